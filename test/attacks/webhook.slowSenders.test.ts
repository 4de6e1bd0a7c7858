import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import pMap from 'p-map';
import { SlowClients } from '../../tools/bench/processes/slowClients.ts';
import { queued, startToldSet } from '../support/demandSets.ts';
import { describeWithLab } from '../support/lab.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';
import { deliverSigned, startWebhookProcess } from '../support/webhookProcess.ts';
import { killWorkerProcesses } from '../support/workerProcess.ts';

const STRANGERS = 2_000;
const DELIVERIES = 200;

await describeWithLab('slow senders of webhook deliveries', { temporal: true }, (lab) => {
  const address = lab.temporal?.address ?? '';
  const taskQueue = `test-${randomUUID().slice(0, 8)}`;
  let client: Client;
  let strangers: SlowClients | undefined;

  beforeAll(async () => {
    client = new Client({ connection: await Connection.connect({ address }) });
  });
  afterEach(async () => {
    await strangers?.stop();
    await killWorkerProcesses();
  });
  afterAll(async () => {
    await terminateAll(client, taskQueue);
    await client.connection.close();
  });

  // `npm run bench -- webhook` measures how long the answers take.
  test('do not block signed deliveries, and use little memory', async () => {
    const set = await startToldSet(client, taskQueue, `set-${taskQueue}`, {
      labels: ['linux'],
      scope: 'acme',
      scopeKind: 'organization',
      ciServer: 'github',
    });
    const webhook = startWebhookProcess(address, taskQueue);
    await webhook.started();
    const senders = (strangers = new SlowClients(webhook.webhook(), STRANGERS));
    await until(
      'all of them to be there',
      () => senders.now.begun >= STRANGERS,
      () => JSON.stringify(senders.now),
      60_000,
    );

    const memory: number[] = [];
    // On a machine that is too slow for all this some are sent again, as those of a GitHub App are.
    const deliver = async (job: number): Promise<void> =>
      await until(
        `job ${job} to be accepted`,
        async () => (await deliverSigned(webhook.webhook(), queued(job, ['linux']))) === 202,
        () => JSON.stringify(senders.now),
        120_000,
      );
    const jobs = Array.from({ length: DELIVERIES }, (_, index) => index + 1);
    await pMap(
      jobs,
      async (job) => {
        memory.push(await residentMiB(webhook.pid));
        await deliver(job);
      },
      { concurrency: 5 },
    );
    expect(new Set((await set.events()).map(({ jobId }) => jobId))).toEqual(
      new Set(jobs.map(String)),
    );

    // Until those that came first have sent more than all of them may, and had to go.
    await until(
      'the budget to be used up',
      async () => {
        memory.push(await residentMiB(webhook.pid));
        return (senders.now.answers['503'] ?? 0) >= 100;
      },
      () => JSON.stringify(senders.now),
      60_000,
    );
    await deliver(DELIVERIES + 1);
    expect(Math.max(...memory)).toBeLessThan(275);
  }, 400_000);
});

async function residentMiB(pid: number): Promise<number> {
  const [, kB] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kB) / 1_024;
}
