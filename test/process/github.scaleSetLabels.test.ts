import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import type { ScaleSets } from '../../activities/ports/scaleSets.ts';
import type { ScaleSetRequest } from '../../core/domain/scaleSet.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';

process.env['HOLDFAST_SCALESET_LABELS_TOKEN'] = 'ghp_simulator';
const WANTED: ScaleSetRequest = {
  scope: { kind: 'organization', name: 'acme' },
  name: 'gpu',
  group: 'default',
  labels: ['gpu', 'large'],
  mark: 'holdfast-0123456789',
};

let simulator: Simulator;
const closers: (() => Promise<void>)[] = [];

beforeEach(async () => {
  simulator = await startSimulator({ scaleSetLabels: 'name' });
});
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  await simulator.stop();
});

function serverWith(more: Record<string, unknown> = {}): CiServer & { scaleSets: ScaleSets } {
  const { server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_SCALESET_LABELS_TOKEN',
    apiUrl: simulator.url,
    ...more,
  });
  closers.push(close);
  return server as CiServer & { scaleSets: ScaleSets };
}

test('a server that stores one label: the others are reported', async () => {
  const { scaleSets } = serverWith();
  expect(await scaleSets.ensure({ ...WANTED, adopt: true })).toMatchObject({
    labels: ['gpu'],
    droppedLabels: ['large', WANTED.mark],
  });
  expect(await scaleSets.remove({ ...WANTED, adopt: true })).toBe('removed');
});

test('a server that stores one label cannot store the mark: without adopt nothing is created', async () => {
  const { scaleSets } = serverWith();
  const error = await ciServerError(scaleSets.ensure(WANTED));
  expect(error.kind).toBe('rejected');
  expect(error.message).toContain('scaleSet.adopt');
  expect(simulator.scaleSets()).toEqual([]);
});

test.each([
  ['scope', { scopes: ['other'] }, WANTED],
  ['group', { groups: ['7'] }, WANTED],
  ['label', { labels: ['gpu'] }, { ...WANTED, name: 'large' }],
  // A server that keeps one label makes the name a label.
  ['name', { labels: ['large'] }, { ...WANTED, labels: ['large'] }],
])(
  'a credential that does not allow the %s creates no scale set',
  async (_what, limits, wanted) => {
    const { scaleSets } = serverWith(limits);
    expect((await ciServerError(scaleSets.ensure({ ...wanted, adopt: true }))).kind).toBe(
      'rejected',
    );
    expect((await ciServerError(scaleSets.remove(wanted))).kind).toBe('rejected');
    expect(simulator.requestCounts().total).toBe(0);
  },
);

test('errors and log lines contain no tokens of the service', async () => {
  const lines: unknown[] = [];
  const logger = {
    debug: (fields: object, text: string) => void lines.push(fields, text),
    warn: (fields: object, text: string) => void lines.push(fields, text),
    error: (fields: object, text: string) => void lines.push(fields, text),
  };
  const { server, close } = ciServerOf(
    { type: 'pat', tokenEnv: 'HOLDFAST_SCALESET_LABELS_TOKEN', apiUrl: simulator.url },
    { logger },
  );
  closers.push(close);
  const sets = (server as CiServer & { scaleSets: ScaleSets }).scaleSets;
  const { id } = await sets.ensure({ ...WANTED, adopt: true });
  const session = await sets.openSession(WANTED.scope, id, 'owner');
  const conflict = await ciServerError(sets.openSession(WANTED.scope, id, 'owner'));
  const set = simulator.world.scaleSets.byId(id);
  const secrets = [set?.session?.token ?? '', ...simulator.world.tenantTokens.keys()];
  expect(secrets).toHaveLength(2);
  const told = JSON.stringify([lines, conflict.message, session, set && { ...set, session: 0 }]);
  expect(secrets.filter((secret) => told.includes(secret))).toEqual([]);
});
