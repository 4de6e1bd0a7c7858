/**
 * Receives GitHub's `workflow_job` deliveries and passes what they say about one of our runners on to its workflow.
 * A delivery is a hint that makes things faster, never the only source. Answers: 2xx only after Temporal has accepted the event;
 * 503 while Temporal is away, so that GitHub shows the delivery as failed and it can be delivered again.
 */
import { verify } from '@octokit/webhooks-methods';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { z } from 'zod';
import { SEARCH_ATTRIBUTES, ciEventSignal, type CiEvent } from '../workflows/contract.ts';
import { quoted, runningRunners } from './visibility.ts';

export const WEBHOOK_PATH = '/webhooks/github';

export interface WebhookOptions {
  /** The client of now. @throws Error while there is no connection to Temporal */
  readonly client: () => Client;
  /** The secrets of now; a delivery signed with any of them is good. */
  readonly secrets: () => readonly string[];
  /** Runners of this task queue are ours. */
  readonly taskQueue: string;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Told what became of each delivery, for metrics. */
  readonly onDelivery?: (outcome: string) => void;
}

/** GitHub gives up on a delivery after 10 s. */
const TEMPORAL_DEADLINE_MS = 8_000;

/** Whatever a repository's author can write is cut to a size that is fit for a history. */
const short = (max: number) => z.string().transform((value) => value.slice(0, max));
const workflowJobEvent = z.object({
  action: z.string(),
  workflow_job: z.object({
    id: z.int().positive(),
    name: short(200).nullish(),
    runner_id: z.int().nonnegative().nullish(),
    runner_name: z.string().nullish(),
    conclusion: short(40).nullish(),
  }),
});
const ACTIONS = ['queued', 'in_progress', 'completed'] as const satisfies readonly CiEvent['action'][];
/** Every name that Holdfast gives a runner; another one is no runner of ours, and must not get into a query. */
const OUR_RUNNER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** What a delivery asks for. */
export type Delivery =
  | { readonly kind: 'event'; readonly runnerName: string; readonly event: CiEvent }
  | { readonly kind: 'ignored'; readonly why: 'other_event' | 'other_action' | 'no_runner' }
  | { readonly kind: 'malformed' };

/** Reads a delivery whose signature was good. Its content is still untrusted. */
export function readDelivery(eventName: string, body: unknown): Delivery {
  if (eventName !== 'workflow_job') return { kind: 'ignored', why: 'other_event' };
  const parsed = workflowJobEvent.safeParse(body);
  if (!parsed.success) return { kind: 'malformed' };
  const { id, name, runner_id: runnerId, runner_name: runnerName, conclusion } = parsed.data.workflow_job;
  const action = ACTIONS.find((known) => known === parsed.data.action);
  if (action === undefined) return { kind: 'ignored', why: 'other_action' };
  if (runnerName === null || runnerName === undefined || !OUR_RUNNER_NAME.test(runnerName)) return { kind: 'ignored', why: 'no_runner' };
  const event: CiEvent = { action, jobId: id, runnerName };
  if (runnerId) event.runnerId = runnerId; // GitHub says null or 0 until a runner is assigned
  if (name) event.jobName = name;
  if (conclusion) event.conclusion = conclusion;
  return { kind: 'event', runnerName, event };
}

/** Adds the route to the server. */
export async function registerWebhook(server: FastifyInstance, options: WebhookOptions): Promise<void> {
  // In a scope of its own: here a body is the bytes that were signed, not what they mean.
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.post(WEBHOOK_PATH, async (request, reply) => {
      const { outcome, status, message } = await receive(options, request.headers, request.body);
      options.onDelivery?.(outcome);
      return await answer(reply, status, message);
    });
  });
}

interface Answer {
  readonly outcome: string;
  readonly status: number;
  readonly message?: string;
}

async function receive(options: WebhookOptions, headers: Readonly<Record<string, string | string[] | undefined>>, body: unknown): Promise<Answer> {
  const { logger } = options;
  const header = (name: string): string => {
    const value = headers[name];
    return typeof value === 'string' ? value.slice(0, 200) : '';
  };
  const delivery = header('x-github-delivery');
  const text = Buffer.isBuffer(body) ? body.toString('utf8') : '';
  if (!(await isSigned(options.secrets, text, header('x-hub-signature-256'), logger))) {
    logger.warn({ delivery }, 'webhook delivery with a wrong signature refused: is its secret the one of HOLDFAST_WEBHOOK_SECRET or HOLDFAST_WEBHOOK_SECRET_FILE?');
    return { outcome: 'bad_signature', status: 401, message: 'the signature is wrong: set the same secret here and at GitHub' };
  }
  if (header('x-github-event') === 'ping') return { outcome: 'ping', status: 200, message: 'pong' };
  const json = parse(text);
  if (json === undefined) return { outcome: 'malformed', status: 400, message: 'the body is not JSON: set the webhook\'s content type to application/json' };
  const read = readDelivery(header('x-github-event'), json);
  if (read.kind === 'ignored') return { outcome: read.why, status: 204 };
  if (read.kind === 'malformed') return { outcome: 'malformed', status: 400, message: 'this is not a workflow_job event as GitHub sends it' };
  try {
    const told = await options.client().withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, async () => await tell(options, read.runnerName, read.event));
    return told > 0 ? { outcome: 'accepted', status: 202, message: 'accepted' } : { outcome: 'other_runner', status: 204 };
  } catch (error) {
    logger.error({ err: error, delivery }, 'webhook delivery not passed on: Temporal does not accept it');
    return { outcome: 'temporal_unavailable', status: 503, message: 'Temporal does not accept the event now: deliver it again later' };
  }
}

/** Constant-time over the raw body, for each secret. */
async function isSigned(secrets: WebhookOptions['secrets'], text: string, signature: string, logger: WebhookOptions['logger']): Promise<boolean> {
  if (text === '' || signature === '') return false;
  let known: readonly string[];
  try {
    known = secrets();
  } catch (error) {
    logger.error({ err: error }, 'the webhook secret cannot be read: deliveries are refused until it can');
    return false;
  }
  const results = await Promise.all(known.map(async (secret) => await verify(secret, text, signature)));
  return results.includes(true);
}

/** @returns how many workflows accepted the event */
async function tell({ client, taskQueue }: WebhookOptions, runnerName: string, event: CiEvent): Promise<number> {
  const query = `${runningRunners(taskQueue)} AND ${SEARCH_ATTRIBUTES.name.name} = ${quoted(runnerName)}`;
  const { workflow } = client();
  let told = 0;
  for await (const { workflowId } of workflow.list({ query })) {
    try {
      await workflow.getHandle(workflowId).signal(ciEventSignal, event);
      told++;
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error; // it has ended meanwhile: nobody to tell
    }
  }
  return told;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function answer(reply: FastifyReply, status: number, message: string | undefined): Promise<FastifyReply> {
  return message === undefined ? await reply.code(status).send() : await reply.code(status).type('application/json').send({ message });
}
