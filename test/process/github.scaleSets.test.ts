import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import { startSimulator } from '../../tools/simulator/simulator.ts';
import { describeIf } from '../support/lab.ts';
import { ciServerOf } from '../support/ciServers.ts';
import { scaleSetContract, type ScaleSetFixture } from '../support/scaleSetContract.ts';
import { WireRunner } from '../support/wireRunner.ts';

process.env['HOLDFAST_SCALESET_TOKEN'] = 'ghp_scalesets';

async function simulated(): Promise<ScaleSetFixture> {
  const simulator = await startSimulator({
    tokens: [{ token: 'ghp_scalesets' }],
    scaleSetPollMs: 200,
  });
  const { server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_SCALESET_TOKEN',
    apiUrl: simulator.url,
  });
  const runners: WireRunner[] = [];
  const nameOf = (id: number): string =>
    simulator.scaleSets().find((set) => set.id === id)?.name ?? '';
  return {
    server,
    queueJob: async () => void simulator.queueJob({ repo: 'acme/web', labels: ['gpu'] }),
    async startJob(registration) {
      const { runner } = await WireRunner.start(simulator.url, registration);
      runners.push(runner);
      const { id } = await runner.job;
      await simulator.waitForJob(id, 'in_progress');
      return { finish: async () => await runner.finish() };
    },
    expireToken: async (id) => simulator.expireScaleSetToken(nameOf(id)),
    evict: async (id) => simulator.evictScaleSet(nameOf(id)),
    expireTenantTokens: async () => simulator.expireTenantTokens(),
    failNextPoll: async (how) =>
      void simulator.addFault({
        ...(how === 'limit' ? { kind: 'secondary_limit' } : { kind: 'status', status: 503 }),
        endpoint: 'GET /tenant/queue/*',
        count: 1,
      }),
    unacknowledged: async (id) =>
      simulator.scaleSets().find((set) => set.id === id)?.unacknowledged ?? 0,
    async close() {
      for (const runner of runners) runner.stop();
      await close();
      await simulator.stop();
    },
  };
}

scaleSetContract('the simulator', simulated);

test('a poll contains the capacity', async () => {
  const simulator = await startSimulator({
    tokens: [{ token: 'ghp_scalesets' }],
    scaleSetPollMs: 50,
  });
  const credential = { type: 'pat', tokenEnv: 'HOLDFAST_SCALESET_TOKEN', apiUrl: simulator.url };
  const { server, close } = ciServerOf(credential);
  const { scaleSets: sets } = server;
  if (sets === undefined) throw new Error('there are no scale sets');
  const scope = { kind: 'organization', name: 'acme' } as const;
  const mark = 'holdfast-0123456789';
  const { id } = await sets.ensure({ scope, name: 'gpu', group: 'default', labels: ['gpu'], mark });
  const session = await sets.openSession(scope, id, 'first');
  await session.next(0, 3);
  await session.next(0, 0);
  expect(simulator.scaleSet('gpu')?.capacities).toEqual([3, 0]);
  await close();
  await simulator.stop();
});

interface EmulatorState {
  readonly jobs: readonly { readonly id: number; readonly state: string }[];
  readonly unacknowledged: Readonly<Record<string, readonly number[]>>;
}

/** The emulator of the crate `scaleset`, which nobody here wrote. */
async function emulated(binary: string): Promise<ScaleSetFixture> {
  const emulator = spawn(
    binary,
    [
      '--port',
      '0',
      '--pat',
      'ghp_scalesets',
      '--long-poll-ms',
      '200',
      '--admin-token-ttl-secs',
      '90',
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = (await once(emulator.stdout, 'data')) as [Buffer];
  const { url, control_url: control } = JSON.parse(line.toString()) as Record<string, string>;
  const { server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_SCALESET_TOKEN',
    apiUrl: `${url}/api/v3`,
  });
  const call = async <T = undefined>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await fetch(`${control}/${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  return {
    server,
    queueJob: async (scaleSetId) => await call('POST', 'jobs', { scaleSetId }),
    async startJob({ runnerName }) {
      const { jobs } = await call<EmulatorState>('GET', 'state');
      const job = jobs.find(({ state }) => state === 'assigned');
      await call('POST', `jobs/${job?.id}/start`, { runnerName });
      return { finish: async () => await call('POST', `jobs/${job?.id}/complete`) };
    },
    expireToken: async (id) => await call('POST', `expire/queue-token/${id}`),
    evict: async (id) => await call('POST', `expire/session/${id}`),
    expireTenantTokens: async () => await call('POST', 'expire/admin-tokens'),
    failNextPoll: async (how) =>
      await call('POST', 'faults', {
        endpoint: 'getMessage',
        times: 1,
        response:
          how === 'limit'
            ? { kind: 'rateLimit', status: 429, retryAfterSecs: 1, primary: false }
            : { kind: 'status', status: 503 },
      }),
    unacknowledged: async (id) =>
      (await call<EmulatorState>('GET', 'state')).unacknowledged[id]?.length ?? 0,
    async close() {
      await close();
      emulator.kill();
      await once(emulator, 'exit');
    },
  };
}

await describeIf(
  "scale sets of the crate's emulator",
  async () => await resolveBinary('scaleset-emulator'),
  {},
  (binary) => scaleSetContract("the crate's emulator", async () => await emulated(binary)),
);
