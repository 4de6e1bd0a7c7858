import { createHmac } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Client } from '@temporalio/client';
import { fastify } from 'fastify';
import fc from 'fast-check';
import type { CoveringSets } from '../../../worker/demand/coveringSets.ts';
import { registerWebhook, WEBHOOK_PATH } from '../../../worker/demand/webhook.ts';
import { mutatedJson, mutatedText } from '../mutations.ts';
import { mustBeClear } from '../clearMessage.ts';
import { target } from '../target.ts';

const SECRET = 'secret';
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** GitHub's own examples: those of jobs, and one of each other event. */
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as { name: string; examples: object[] }[];
const jobs = examples.find(({ name }) => name === 'workflow_job')?.examples ?? [];
const others = examples.flatMap(({ examples: [first] }) => (first === undefined ? [] : [first])).slice(0, 20);

const body = fc.oneof(
  { arbitrary: mutatedJson([...jobs, ...jobs, ...others]).map((value) => JSON.stringify(value) ?? ''), weight: 4 },
  { arbitrary: mutatedText(jobs.map((job) => JSON.stringify(job)), ['"', '\\', '\\u0000', '\\ud800', '{', '}', ',', ':', '1e999', '\uFEFF']), weight: 1 },
);

const header = mutatedText(['workflow_job', 'ping', 'application/json', 'application/x-www-form-urlencoded', '72d3162e-cc78-11e3-81ab-4c9367dc0958', `sha256=${'0'.repeat(64)}`, 'sha1=0']);
/** Absent: as GitHub sends it. */
const headers = fc.record({ event: header, delivery: header, signature: header, type: header }, { requiredKeys: [] });

/** What an answer may be, Temporal being away or not: nothing that a delivery holds is an error of ours. */
const ANSWERS = [200, 202, 204, 400, 401, 413, 415, 422, 503];

export const webhook = target('webhook', 'deliveries of webhooks: bodies and headers', async () => {
  let isAway = false;
  const client = {
    withDeadline: async (_deadline: number, tell: () => Promise<unknown>) => await tell(),
    workflow: {
      list: async function* () {},
      getHandle: () => ({ signal: async () => await (isAway ? Promise.reject(new Error('away')) : Promise.resolve()) }),
    },
  } as unknown as Client;
  const sets = { choose: async () => ({ chosen: 'set-linux', running: new Set(['set-linux']) }) } as unknown as CoveringSets;
  const server = fastify();
  await registerWebhook(server, { client: () => client, secrets: () => [SECRET], taskQueue: 'holdfast', sets, logger: quiet });
  await server.ready();
  return {
    inputs: fc.record({ body, headers, away: fc.boolean() }),
    async run({ body: payload, headers: { event = 'workflow_job', delivery, signature = signed(payload), type = 'application/json' }, away }) {
      isAway = away;
      const answer = await server.inject({
        method: 'POST',
        url: WEBHOOK_PATH,
        payload,
        headers: { 'content-type': type, 'x-github-event': event, 'x-hub-signature-256': signature, ...(delivery !== undefined && { 'x-github-delivery': delivery }) },
      });
      if (!ANSWERS.includes(answer.statusCode)) throw new Error(`answered ${answer.statusCode}: ${answer.body.slice(0, 500)}`);
      if (answer.statusCode >= 400) mustBeClear((answer.json() as { message?: string }).message ?? '', `answer ${answer.statusCode}`);
    },
    close: async () => await server.close(),
  };
});

const signed = (payload: string): string => `sha256=${createHmac('sha256', SECRET).update(payload).digest('hex')}`;
