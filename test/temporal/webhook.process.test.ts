import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import type { SetRoutingInfo } from '../../core/contract/index.ts';
import { CodecKeyFile } from '../../worker/codec/codecKeyFile.ts';
import { createEncryptedDataConverter } from '../../worker/codec/dataConverter.ts';
import { EncryptionCodec } from '../../worker/codec/encryptionCodec.ts';
import { queued, startToldSet } from '../support/demandSets.ts';
import { describeWithLab } from '../support/lab.ts';
import { readable } from '../support/secretSearch.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { TestAuthority, TlsGate } from '../support/tlsGate.ts';
import { until } from '../support/until.ts';
import { deliverSigned, startWebhookProcess } from '../support/webhookProcess.ts';
import { killWorkerProcesses } from '../support/workerProcess.ts';

const COVER: SetRoutingInfo = {
  labels: ['linux'],
  scope: 'acme',
  scopeKind: 'organization',
  ciServer: 'github',
};

await describeWithLab('the webhook as a process', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-webhook-'));
  const keyFile = join(folder, 'keys');
  writeFileSync(keyFile, `first ${randomBytes(32).toString('base64')}\n`);
  let client: Client;
  /** Reads also what the keys have encrypted. */
  let keyed: Client;
  let taskQueue: string;

  beforeAll(async () => {
    const connection = await Connection.connect({ address });
    client = new Client({ connection });
    keyed = new Client({ connection, dataConverter: createEncryptedDataConverter({ keyFile }) });
  });
  beforeEach(() => {
    taskQueue = `test-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => {
    await killWorkerProcesses();
    await terminateAll(keyed, taskQueue);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await client.connection.close();
  });

  test('several side by side, without a credential: deliveries on one port, health and metrics on another; ended by SIGTERM', async () => {
    const set = await startToldSet(client, taskQueue, `set-${taskQueue}`, COVER);
    const [one, other] = [
      startWebhookProcess(address, taskQueue),
      startWebhookProcess(address, taskQueue),
    ];
    const [health] = await Promise.all([one.started(), other.started()]);
    // A client needs no native part, which takes 30 MiB.
    const maps = process.platform === 'linux' ? readFileSync(`/proc/${one.pid}/maps`, 'utf8') : '';
    expect(maps).not.toMatch(/core-bridge/);
    const id = randomUUID();
    for (const process of [one, other, one])
      expect(await deliverSigned(process.webhook(), queued(1, ['linux']), id)).toBe(202);
    expect(await deliverSigned(other.webhook(), queued(2, ['linux']))).toBe(202);
    expect((await set.events()).map(({ jobId }) => jobId)).toEqual(['1', '1', '2']); // a set bears what another process has told it

    expect(await (await fetch(`${health}/metrics`)).text()).toContain(
      'holdfast_webhook_deliveries_total{outcome="duplicate"} 1',
    );
    expect(await (await fetch(`${health}/readyz`)).json()).toEqual({ status: 'ok', failing: [] });
    expect((await fetch(new URL('/webhooks/github', health), { method: 'POST' })).status).toBe(404);
    for (const path of ['/metrics', '/readyz', '/livez'])
      expect((await fetch(new URL(path, one.webhook()))).status).toBe(404);
    for (const process of [one, other]) {
      process.kill('SIGTERM');
      expect(await process.ended).toBe(143);
      expect(process.log.filter(({ level }) => level !== 'info')).toEqual([]);
    }
  });

  test('with the keys of the codec it decodes covers of sets, and sends nothing in plain text', async () => {
    const set = await startToldSet(keyed, taskQueue, `set-${taskQueue}`, COVER);
    const [keyless, webhook] = [
      startWebhookProcess(address, taskQueue),
      startWebhookProcess(address, taskQueue, { HOLDFAST_CODEC_KEY_FILE: keyFile }),
    ];
    await Promise.all([keyless.started(), webhook.started()]);
    expect(await deliverSigned(keyless.webhook(), queued(1, ['linux']))).toBe(503);
    expect(JSON.stringify(keyless.log)).toContain('HOLDFAST_CODEC_KEY_FILE');
    expect(await deliverSigned(webhook.webhook(), queued(1, ['linux']))).toBe(202);
    const { events } = await set.handle.fetchHistory();
    const sent = (events ?? []).flatMap(
      ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.input?.payloads ?? [],
    );
    expect(readable(sent)).not.toContain('acme/app');
    expect(readable(await new EncryptionCodec(new CodecKeyFile(keyFile)).decode(sent))).toContain(
      'acme/app',
    );
  });

  test('a rotated API key for Temporal is used without a restart', async () => {
    const authority = new TestAuthority(folder);
    const gate = await TlsGate.open(address, authority);
    const [{ crt, key }, apiKey] = [authority.issue('webhook'), join(folder, 'api-key')];
    writeFileSync(apiKey, 'key-1');
    const tls = {
      TEMPORAL_TLS_CLIENT_CERT_PATH: crt,
      TEMPORAL_TLS_CLIENT_KEY_PATH: key,
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: authority.certificate,
    };
    const webhook = startWebhookProcess(gate.address, taskQueue, {
      ...tls,
      HOLDFAST_TEMPORAL_API_KEY_FILE: apiKey,
    });
    try {
      const health = await webhook.started();
      expect([...gate.seen.apiKeys]).toEqual(['key-1']);
      writeFileSync(apiKey, 'key-2');
      await until(
        'the other API key',
        async () => {
          expect((await fetch(`${health}/readyz`)).status).toBe(200);
          return gate.seen.apiKeys.has('key-2');
        },
        () => JSON.stringify(webhook.log),
        60_000,
      );
    } finally {
      gate.close();
    }
  }, 120_000);

  test('it starts before Temporal; an invalid setting is one line and status 2', async () => {
    const waiting = startWebhookProcess('127.0.0.1:1', taskQueue, {
      HOLDFAST_CONNECT_TIMEOUT: '1m',
    });
    await until('it to wait', () =>
      waiting.log.some(({ msg }) =>
        /no Temporal server answers at 127.0.0.1:1 \(ECONNREFUSED\); trying for another/.test(msg),
      ),
    );
    waiting.kill('SIGTERM');
    expect(await waiting.ended).toBe(143);
    const server = createServer().listen(0, '127.0.0.1');
    await until('the port', () => server.listening);
    const { port } = server.address() as AddressInfo;
    const taken = startWebhookProcess(address, taskQueue, {
      HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${port}`,
    });
    expect([await taken.ended, taken.errors]).toEqual([
      2,
      [
        `holdfast webhook: HOLDFAST_WEBHOOK_ADDRESS: cannot listen on 127.0.0.1:${port} (EADDRINUSE): set another address or port`,
      ],
    ]);
    server.close();
    const secretless = startWebhookProcess(address, taskQueue, { HOLDFAST_WEBHOOK_SECRET: '' });
    expect([await secretless.ended, secretless.errors]).toEqual([
      2,
      [
        "holdfast webhook: HOLDFAST_WEBHOOK_SECRET_FILE: is not set: set it to the path of a file with the webhook's secret",
      ],
    ]);
  });
});
