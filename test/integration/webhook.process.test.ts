import { randomUUID } from 'node:crypto';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { queued, startToldSet } from '../support/demandSets.ts';
import { describeWithLab } from '../support/lab.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';
import { deliverSigned, startWebhookProcess } from '../support/webhookProcess.ts';
import { killWorkerProcesses } from '../support/workerProcess.ts';

await describeWithLab('the webhook as a process', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  let client: Client;
  let taskQueue: string;

  beforeAll(async () => {
    client = new Client({ connection: await Connection.connect({ address }) });
  });
  beforeEach(() => {
    taskQueue = `test-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => {
    await killWorkerProcesses();
    await terminateAll(client, taskQueue);
  });
  afterAll(async () => await client.connection.close());

  test('several beside each other, without a credential: deliveries on one port, health and metrics on another; ended by SIGTERM', async () => {
    const set = await startToldSet(client, taskQueue, `set-${taskQueue}`, { labels: ['linux'], scope: 'acme', scopeKind: 'organization' });
    const [one, other] = [startWebhookProcess(address, taskQueue), startWebhookProcess(address, taskQueue)];
    const [health] = await Promise.all([one.started(), other.started()]);
    const id = randomUUID();
    for (const { webhook } of [one, other, one]) expect(await deliverSigned(webhook(), queued(1, ['linux']), id)).toBe(202);
    expect(await deliverSigned(other.webhook(), queued(2, ['linux']))).toBe(202);
    expect((await set.events()).map(({ jobId }) => jobId)).toEqual([1, 1, 2]); // a set bears what another process has told it

    expect(await (await fetch(`${health}/metrics`)).text()).toContain('holdfast_webhook_deliveries_total{outcome="repeated"} 1');
    expect(await (await fetch(`${health}/readyz`)).json()).toEqual({ status: 'ok', failing: [] });
    expect((await fetch(new URL('/webhooks/github', health), { method: 'POST' })).status).toBe(404);
    for (const path of ['/metrics', '/readyz', '/livez']) expect((await fetch(new URL(path, one.webhook()))).status).toBe(404);
    for (const process of [one, other]) {
      process.kill('SIGTERM');
      expect(await process.ended).toBe(143);
      expect(process.log.filter(({ level }) => level !== 'info')).toEqual([]);
    }
  });

  test('it begins before Temporal is there; what it cannot have is one line and status 2', async () => {
    const waiting = startWebhookProcess('127.0.0.1:1', taskQueue, { HOLDFAST_CONNECT_TIMEOUT: '1m' });
    await until('it to wait', () => waiting.log.some(({ msg }) => msg.includes('trying for another')));
    waiting.kill('SIGTERM');
    expect(await waiting.ended).toBe(143);
    const server = createServer().listen(0, '127.0.0.1');
    await until('the port', () => server.listening);
    const { port } = server.address() as AddressInfo;
    const taken = startWebhookProcess(address, taskQueue, { HOLDFAST_WEBHOOK_ADDRESS: `127.0.0.1:${port}` });
    expect([await taken.ended, taken.errors]).toEqual([2, [`holdfast webhook: HOLDFAST_WEBHOOK_ADDRESS: cannot listen on 127.0.0.1:${port} (EADDRINUSE): set another address or port`]]);
    server.close();
    const secretless = startWebhookProcess(address, taskQueue, { HOLDFAST_WEBHOOK_SECRET: '' });
    expect([await secretless.ended, secretless.errors]).toEqual([2, ["holdfast webhook: HOLDFAST_WEBHOOK_SECRET_FILE: is not set: set it to the path of a file with the webhook's secret"]]);
  });
});
