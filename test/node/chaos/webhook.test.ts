import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sign } from '@octokit/webhooks-methods';
import { afterAll, expect, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { fastify } from 'fastify';
import { pino } from 'pino';
import { down, kill, start, up } from '../../../tools/lab/lab.ts';
import { SetDirectory } from '../../../worker/webhook/setDirectory.ts';
import { webhookPath } from '../../../worker/webhook/servers/deliveryFormats.ts';
import { registerWebhook } from '../../../worker/webhook/webhook.ts';
import { queued, startToldSet } from '../../support/demandSets.ts';
import { describeIf } from '../../support/lab.ts';
import { until } from '../../support/until.ts';

const SECRET = 'shh';
const SENDERS = 50;

/** In a lab of its own: others use the shared one. */
const stateDir = await mkdtemp(join(tmpdir(), 'holdfast-webhook-'));
const prepare = async (): Promise<string> =>
  (await up({ stateDir, temporal: true, progress: () => undefined })).temporal?.address ?? '';

await describeIf('the webhook while Temporal is killed', prepare, { temporal: true }, (address) => {
  afterAll(async () => {
    await down({ stateDir, purge: true });
    await rm(stateDir, { recursive: true, force: true });
  });

  test('accepted deliveries take effect; rejected ones are accepted when they are sent again; each has a response', async () => {
    const connection = await NativeConnection.connect({ address });
    const taskQueue = `test-${randomUUID().slice(0, 8)}`;
    const ports = {
      client: () => new Client({ connection }),
      taskQueue,
      logger: pino({ level: 'silent' }),
    };
    const server = fastify();
    await registerWebhook(server, {
      ...ports,
      sets: new SetDirectory(ports),
      secrets: () => [SECRET],
      deadlineMs: 1_000,
    });
    const set = await startToldSet(ports.client(), taskQueue, `set-${taskQueue}`, {
      labels: ['linux'],
      scope: 'acme',
      scopeKind: 'organization',
      ciServer: 'github',
    });

    const accepted = new Set<number>();
    const refused = new Map<number, string>();
    const deliver = async (job: number, id: string): Promise<void> => {
      const payload = JSON.stringify(queued(job, ['linux']));
      const headers = {
        'content-type': 'application/json',
        'x-github-event': 'workflow_job',
        'x-github-delivery': id,
        'x-hub-signature-256': await sign(SECRET, payload),
      };
      const { statusCode } = await server.inject({
        method: 'POST',
        url: webhookPath('github'),
        payload,
        headers,
      });
      expect([202, 503]).toContain(statusCode);
      if (statusCode === 202) {
        accepted.add(job);
        refused.delete(job);
      } else {
        refused.set(job, id);
      }
    };
    let jobs = 0;
    let killed = false;
    // A slow server may refuse before it is killed: then the delivery is sent again. Each stops at
    // its first refusal after that: otherwise the number of refused jobs, and with it the time
    // that this test takes, follows from how long Temporal takes to come back.
    const sendUntilRefused = async (): Promise<void> => {
      let job: number;
      do {
        job = ++jobs;
        const id = randomUUID();
        do {
          await deliver(job, id);
        } while (refused.has(job) && !killed);
      } while (!refused.has(job));
    };
    const senders = Array.from({ length: SENDERS }, sendUntilRefused);
    await until('many to be accepted', () => accepted.size >= 200, undefined, 120_000);
    killed = true;
    await kill(stateDir, 'temporal');
    await Promise.all(senders);
    expect(refused.size).toBe(SENDERS);
    await start(stateDir, 'temporal');

    const redeliver = async ([job, id]: [number, string]): Promise<void> =>
      await until(`job ${job} to be accepted`, async () => {
        await deliver(job, id);
        return !refused.has(job);
      });
    await Promise.all([...refused].map(redeliver));
    expect(refused.size).toBe(0);
    const told = new Set((await set.events()).map(({ jobId }) => jobId));
    expect([...accepted].filter((job) => !told.has(String(job)))).toEqual([]);
    expect(accepted.size).toBe(jobs);
    await server.close();
    await connection.close();
  }, 300_000);
});
