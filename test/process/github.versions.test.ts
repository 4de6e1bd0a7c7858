import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';

process.env['HOLDFAST_VERSIONS_TOKEN'] = 'ghp_simulator';
const SCOPES: Scope[] = [
  { kind: 'organization', name: 'acme' },
  { kind: 'repository', name: 'acme/web' },
];

let simulator: Simulator;
let server: CiServer;
let close: () => Promise<void>;

beforeEach(async () => {
  simulator = await startSimulator({
    tokens: [{ token: 'ghp_simulator', scopes: ['orgs/acme', 'repos/acme/*'] }],
    versionDeadlines: {
      '2.330.0': { runtime: '2026-12-24T00:00:00Z', registration: '2026-12-31' },
    },
  });
  ({ server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_VERSIONS_TOKEN',
    apiUrl: simulator.url,
  }));
});
afterEach(async () => {
  await close();
  await simulator.stop();
});

test.each(SCOPES)('the deadlines of a runner version, asked for $kind $name', async (scope) => {
  expect(await server.versionDeadline?.(scope, '2.330.0')).toEqual({
    jobsUntil: Date.parse('2026-12-24T00:00:00Z'),
    registrationUntil: Date.parse('2026-12-31T00:00:00Z'),
  });
});

test("a version without deadlines has none, and GitHub's unknown versions are unknown", async () => {
  const [scope] = SCOPES as [Scope];
  expect(await server.versionDeadline?.(scope, '2.338.0')).toEqual({});
  expect(await server.versionDeadline?.(scope, 'nightly')).toBeUndefined();
});

test('an inaccessible scope is an error, not a version without deadlines', async () => {
  const scope: Scope = { kind: 'organization', name: 'nobody' };
  const error = await ciServerError(
    server.versionDeadline?.(scope, '2.330.0') ?? Promise.resolve(),
  );
  expect(error).toMatchObject({ kind: 'credentials' });
});
