import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RUNNER_WORKFLOW } from '../../core/contract/index.ts';
import { Session } from '../../cli/shared/session.ts';
import { loadTemporalConfig } from '../../worker/settings/temporalConfig.ts';
import { connectNative } from '../../worker/temporal/nativeConnection.ts';
import { RotatingTemporalClient } from '../../worker/temporal/rotatingTemporalClient.ts';
import { HoldfastPlugin } from '../../worker/plugin/plugin.ts';
import { NativeConnection, Worker } from '@temporalio/worker';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { SHORT_INTERVALS } from '../support/shortIntervals.ts';
import { describeWithLab } from '../support/lab.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { TestAuthority, TlsGate, type CertificateFiles } from '../support/tlsGate.ts';
import { until } from '../support/until.ts';

/** How often credentials are looked at here, in ms. */
const CHECK_MS = 100;

await describeWithLab('rotated credentials for Temporal', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-rotation-'));
  const mounted = {
    crt: join(folder, 'tls.crt'),
    key: join(folder, 'tls.key'),
    apiKey: join(folder, 'api-key'),
  };
  const authority = new TestAuthority(folder);
  const taskQueue = `test-${randomUUID().slice(0, 8)}`;
  let raw: Client;

  beforeAll(async () => {
    raw = new Client({ connection: await Connection.connect({ address }) });
  });
  afterAll(async () => {
    await terminateAll(raw, taskQueue);
    await raw.connection.close();
    rmSync(folder, { recursive: true });
  });

  function mount({ crt, key }: CertificateFiles, apiKey: string): void {
    copyFileSync(crt, mounted.crt);
    copyFileSync(key, mounted.key);
    writeFileSync(mounted.apiKey, apiKey);
  }
  const env = (gate: TlsGate): Record<string, string> => ({
    HOME: folder,
    TEMPORAL_ADDRESS: gate.address,
    TEMPORAL_TLS_CLIENT_CERT_PATH: mounted.crt,
    TEMPORAL_TLS_CLIENT_KEY_PATH: mounted.key,
    TEMPORAL_TLS_SERVER_CA_CERT_PATH: authority.certificate,
    HOLDFAST_TEMPORAL_API_KEY_FILE: mounted.apiKey,
    HOLDFAST_TASK_QUEUE: taskQueue,
  });

  test('a worker: another API key on the same connection, other certificates on a new one; running work continues', async () => {
    const gate = await TlsGate.open(address, authority);
    mount(authority.issue('one'), 'key-1');
    const readTemporal = (): ReturnType<typeof loadTemporalConfig> => loadTemporalConfig(env(gate));
    const temporal = readTemporal();
    const told: string[] = [];
    const logger = {
      info: (line: unknown) => void told.push(String(line)),
      warn: (line: unknown) => void told.push(String(line)),
    };
    const connection = await NativeConnection.connect(temporal.connectionOptions);
    const link = new RotatingTemporalClient({
      connect: connectNative,
      connection,
      temporal,
      readTemporal,
      dataConverter: {},
      logger: logger as never,
      intervalMs: CHECK_MS,
    });
    const [compute, ci] = [new FakeCompute(), new FakeCiServer()];
    const plugin = new HoldfastPlugin({
      compute,
      ciServers: ci,
      ciQueues: [{ credential: 'default' }],
      deferralLimits: { provisioningMs: 50, tearDownMs: 50, busyMs: 50 },
    });
    const worker = await Worker.create({ connection, taskQueue, plugins: [plugin] });
    const running = worker.run();
    try {
      link.watchCredentials((next) => plugin.useConnection(next));
      const handle = await raw.workflow.start(RUNNER_WORKFLOW, {
        workflowId: `runner-${taskQueue}`,
        taskQueue,
        args: [{ organization: 'acme', intervals: SHORT_INTERVALS }],
      });
      await until('its pod', () => compute.pods.size > 0);

      writeFileSync(mounted.apiKey, 'key-2');
      // The worker's own calls may all be polls by now, which last a minute.
      await until('the other API key', async () => {
        await link.client.workflowService.getSystemInfo({});
        return gate.seen.apiKeys.has('key-2');
      });
      expect(link.connection).toBe(connection);

      // Half of it is there, as where two files are written one after the other: what is at hand is used on.
      const two = authority.issue('two');
      copyFileSync(two.crt, mounted.crt);
      await until(
        'the worker to say so',
        () =>
          told.some((line) =>
            line.startsWith('the changed credentials for Temporal cannot be used'),
          ),
        () => told.join('\n'),
      );
      expect(link.connection).toBe(connection);
      copyFileSync(two.key, mounted.key);
      await until('another connection', () => link.connection !== connection);
      expect(gate.seen.names).toContain('two');

      gate.refuse('one');
      for (const pod of compute.pods.keys()) compute.start(pod);
      await until(
        'the runner to be idle',
        async () => (await handle.query<{ phase: string }>('status')).phase === 'Idle',
      );
      await handle.executeUpdate('drain', { args: [{ reason: 'over' }] });
      expect(await handle.result()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
      expect(await link.client.workflow.getHandle(handle.workflowId).describe()).toMatchObject({
        status: { name: 'COMPLETED' },
      });
    } finally {
      worker.shutdown();
      await running;
      await link.close();
      gate.close();
    }
  });

  test('the command: a long-running one uses both', async () => {
    const gate = await TlsGate.open(address, authority);
    mount(authority.issue('three'), 'key-3');
    const session = await Session.open({}, env(gate), { checkMs: CHECK_MS });
    const ask = async (): Promise<unknown> =>
      await session.call(async (client) => await client.workflowService.getSystemInfo({}));
    try {
      await ask();
      expect([...gate.seen.names, ...gate.seen.apiKeys]).toEqual(['three', 'key-3']);
      writeFileSync(mounted.apiKey, 'key-4');
      await until('the other API key', async () => {
        await ask();
        return gate.seen.apiKeys.has('key-4');
      });
      const before = session.client;
      mount(authority.issue('four'), 'key-4');
      await until('another connection', () => session.client !== before);
      expect(gate.seen.names).toContain('four');
      gate.refuse('three');
      await ask();
    } finally {
      await session.close();
      gate.close();
    }
  });
});
