import { createHmac } from 'node:crypto';
import { createRequire } from 'node:module';
import type { Client } from '@temporalio/client';
import fc, { type Arbitrary } from 'fast-check';
import { pino } from 'pino';
import type { SetDirectory } from '../../../worker/webhook/setDirectory.ts';
import { webhookPath } from '../../../worker/webhook/servers/deliveryFormats.ts';
import { createWebhookServer } from '../../../worker/webhook/webhookServer.ts';
import { mutatedJson, mutatedText } from '../mutations.ts';
import { assertReadableMessage } from '../readableMessage.ts';
import { target } from '../target.ts';

const SECRET = 'secret';
const DELIVERY = '72d3162e-cc78-11e3-81ab-4c9367dc0958';

/** GitHub's own examples: those of jobs with the current date, and one of each other event. */
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as {
  name: string;
  examples: object[];
}[];
const ofToday = (event: string): object[] =>
  JSON.parse(
    JSON.stringify(examples.find(({ name }) => name === event)?.examples ?? []).replaceAll(
      /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g,
      new Date().toISOString(),
    ),
  ) as object[];
const jobs = ofToday('workflow_job');
const others = examples
  .flatMap(({ examples: [first] }) => (first === undefined ? [] : [first]))
  .slice(0, 20);

const body = fc.oneof(
  {
    arbitrary: mutatedJson([...jobs, ...jobs, ...others]).map(
      (value) => JSON.stringify(value) ?? '',
    ),
    weight: 4,
  },
  {
    arbitrary: mutatedText(
      jobs.map((job) => JSON.stringify(job)),
      ['"', '\\', '\\u0000', '\\ud800', '{', '}', ',', ':', '1e999', '\uFEFF'],
    ),
    weight: 1,
  },
);

const header = mutatedText([
  'workflow_job',
  'ping',
  'application/json',
  'application/x-www-form-urlencoded',
  DELIVERY,
  `sha256=${'0'.repeat(64)}`,
  'sha1=0',
]);
/**
 * Headers. Absent: as GitHub sends them. Mostly all are absent, because one wrong header rejects
 * the delivery before its body is read.
 */
const headers: Arbitrary<{ event?: string; delivery?: string; signature?: string; type?: string }> =
  fc.oneof(
    { arbitrary: fc.constant({}), weight: 2 },
    {
      arbitrary: fc.record(
        { event: header, delivery: header, signature: header, type: header },
        { requiredKeys: [] },
      ),
      weight: 1,
    },
  );

/**
 * Expected statuses, with Temporal reachable or not. No delivery may cause an internal error (500).
 */
const ANSWERS = [200, 202, 204, 400, 401, 413, 415, 422, 503];

export const webhook = target('webhook', 'deliveries of webhooks: bodies and headers', () => {
  let isAway = false;
  const client = {
    withDeadline: async (_deadline: number, tell: () => Promise<unknown>) => await tell(),
    workflow: {
      list: async function* () {},
      getHandle: () => ({
        signal: async () => await (isAway ? Promise.reject(new Error('away')) : Promise.resolve()),
      }),
    },
  } as unknown as Client;
  const sets = {
    route: async () => ({ chosen: 'set-linux', running: new Set(['set-linux']) }),
  } as unknown as SetDirectory;
  const options = {
    client: () => client,
    secrets: () => [SECRET],
    taskQueue: 'holdfast',
    sets,
    logger: pino({ level: 'silent' }),
  };
  return {
    inputs: fc.record({ body, headers, away: fc.boolean() }),
    async run({
      body: payload,
      headers: {
        event = 'workflow_job',
        delivery = DELIVERY,
        signature = signed(payload),
        type = 'application/json',
      },
      away,
    }) {
      isAway = away;
      // One server per case: events of one server are sent to a set one after the other.
      const server = await createWebhookServer(options);
      const answer = await server.inject({
        method: 'POST',
        url: webhookPath('github'),
        payload,
        headers: {
          'content-type': type,
          'x-github-event': event,
          'x-github-delivery': delivery,
          'x-hub-signature-256': signature,
        },
      });
      await server.close();
      if (!ANSWERS.includes(answer.statusCode))
        throw new Error(`answered ${answer.statusCode}: ${answer.body.slice(0, 500)}`);
      if (answer.statusCode >= 400)
        assertReadableMessage(
          (answer.json() as { message?: string }).message ?? '',
          `answer ${answer.statusCode}`,
        );
    },
  };
});

const signed = (payload: string): string =>
  `sha256=${createHmac('sha256', SECRET).update(payload).digest('hex')}`;
