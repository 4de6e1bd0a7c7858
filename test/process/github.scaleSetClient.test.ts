import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Scope } from '../../core/domain/ciServer.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import { describeIf } from '../support/lab.ts';

const TOKEN = 'ghp_scalesets';
const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const MARK = 'holdfast-0123456789';
process.env['HOLDFAST_SCALESET_CLIENT_TOKEN'] = TOKEN;

/** What a client saw, and the requests by which it did, as GitHub saw them. */
interface Transcript {
  readonly seen: readonly string[];
  readonly requests: readonly string[];
}

async function withSimulator(
  run: (simulator: Simulator) => Promise<string[]>,
): Promise<Transcript> {
  const simulator = await startSimulator({ tokens: [{ token: TOKEN }], scaleSetPollMs: 5_000 });
  try {
    simulator.queueJob({ repo: 'acme/web', labels: ['gpu'] });
    const seen = await run(simulator);
    const requests = simulator.requests().map(({ endpoint, status }) => `${endpoint} ${status}`);
    return { seen, requests };
  } finally {
    await simulator.stop();
  }
}

/** GitHub's own client: the program is in tools/lab/versions.ts. */
async function byGitHubsClient(binary: string, simulator: Simulator): Promise<string[]> {
  const { stdout } = await promisify(execFile)(binary, [], {
    env: { CONFIG_URL: `${simulator.url}/acme`, TOKEN },
  });
  return stdout.trim().split('\n');
}

/** The same calls by our adapter. */
async function byAdapter(simulator: Simulator): Promise<string[]> {
  const { server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_SCALESET_CLIENT_TOKEN',
    apiUrl: `${simulator.url}/api/v3`,
  });
  const seen: string[] = [];
  const tell = (what: string, value: unknown): void =>
    void seen.push(`${what} ${JSON.stringify(value)}`);
  const sets = server.scaleSets;
  if (sets === undefined) throw new Error('there are no scale sets');
  const wanted = {
    scope: SCOPE,
    name: 'gpu',
    group: 'default',
    labels: ['gpu'],
    mark: MARK,
  } as const;
  const runner = {
    ...wanted,
    name: 'r-1',
    ephemeral: true,
    mode: 'jit',
    scaleSet: 'gpu',
  } as const;
  // It looks for the scale set and creates it.
  const set = await sets.ensure(wanted);
  tell('found', false);
  tell('labels', set.labels.length);
  const session = await sets.openSession(SCOPE, set.id, 'owner');
  const conflict = await ciServerError(sets.openSession(SCOPE, set.id, 'other'));
  tell('conflict', conflict.kind === 'conflict');
  const first = await session.next(0, 5);
  const available = first?.events.filter(({ kind }) => kind === 'available') ?? [];
  tell('available', available.length);
  tell('acquired', (await session.acquire(available.map((each) => each.requestId))).length);
  await session.acknowledge(first?.id ?? 0);
  const second = await session.next(first?.id ?? 0, 5);
  tell('assigned', [
    second?.events.filter(({ kind }) => kind === 'assigned').length,
    second?.statistics.assigned,
  ]);
  await session.acknowledge(second?.id ?? 0);
  const { runnerId = '', env } = await server.register(runner);
  tell('jit', env['ACTIONS_RUNNER_INPUT_JITCONFIG'] !== undefined);
  tell('taken', (await ciServerError(server.register(runner))).kind === 'name_taken');
  tell('same', (await sets.runnerId(SCOPE, 'r-1')) === runnerId);
  await sets.removeRunner(SCOPE, runnerId);
  tell('gone', (await sets.removeRunner(SCOPE, runnerId)) === 'absent');
  await session.close();
  // It looks for the scale set and removes it.
  tell('found', (await sets.remove(wanted)) === 'removed');
  await close();
  return seen;
}

await describeIf(
  "GitHub's own client of scale sets",
  async () => await resolveBinary('scaleset-client'),
  {},
  (binary) => {
    test("gets the same results as Holdfast's adapter, with the same requests in the same order", async () => {
      const original = await withSimulator(
        async (simulator) => await byGitHubsClient(binary, simulator),
      );
      const ours = await withSimulator(byAdapter);
      expect(original.seen.length).toBeGreaterThan(10);
      expect(ours).toEqual(original);
    });
  },
);
