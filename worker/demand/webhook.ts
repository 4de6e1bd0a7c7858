/**
 * Receives GitHub's `workflow_job` deliveries. Answers 2xx only after Temporal has accepted the event for all whom it concerns, and 503
 * otherwise, so that GitHub shows the delivery as failed and it can be delivered again. Keeps nothing: any number of replicas may receive.
 */
import { verify } from '@octokit/webhooks-methods';
import type { Client } from '@temporalio/client';
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import { setWorkflowId } from '../../core/contract/index.ts';
import { SparseLog } from '../sparseLog.ts';
import type { CoveringSets } from './coveringSets.ts';
import { DemandSignals } from './demandSignals.ts';
import { findRunners, tellRunner } from './namedRunners.ts';
import { OncePerKey } from './oncePerKey.ts';
import { readDelivery, type JobNews } from './webhookDelivery.ts';

export const WEBHOOK_PATH = '/webhooks/github';

export interface WebhookOptions {
  /** The client of now. @throws Error while there is no connection to Temporal */
  readonly client: () => Client;
  /** The secrets of now; a delivery signed with any of them is good. */
  readonly secrets: () => readonly string[];
  /** Runners and sets of this task queue are ours. */
  readonly taskQueue: string;
  readonly sets: CoveringSets;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Told what became of each delivery, for metrics. */
  readonly onDelivery?: (outcome: string) => void;
  /** Told of each event of a job that a runner of a set runs, for metrics. */
  readonly onJob?: (set: string, news: JobNews) => void;
  /** How long Temporal may take, in ms. @default 8000 (GitHub gives up on a delivery after 10 s) */
  readonly deadlineMs?: number;
  /** Deliveries under way at once; what is beyond is asked to come again, before its body is read. @default 1000 */
  readonly maxInFlight?: number;
}

/** GitHub's own cap is 25 MB, but a job is some KB, and each of its steps 0.3 KB. */
const BODY_LIMIT = 1024 * 1024;
/** Deliveries. */
const REMEMBERED = 10_000;
const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

interface Answer {
  readonly outcome: string;
  readonly status: number;
  readonly message?: string;
}
const TOO_LARGE: Answer = { outcome: 'too_large', status: 413, message: `the body is over ${BODY_LIMIT / 1024} KiB, which no workflow_job event is: subscribe the webhook to workflow jobs only` };
const OVERLOADED: Answer = { outcome: 'overloaded', status: 503, message: 'too many deliveries are under way: deliver it again later' };
const BAD_SIGNATURE: Answer = { outcome: 'bad_signature', status: 401, message: 'the signature is wrong: set the same secret here and at GitHub' };
const PONG: Answer = { outcome: 'ping', status: 200, message: 'pong' };
const ACCEPTED: Answer = { outcome: 'accepted', status: 202, message: 'accepted' };
const REPEATED: Answer = { outcome: 'repeated', status: 202, message: 'accepted before' };
const NO_JSON: Answer = { outcome: 'malformed', status: 400, message: 'the body is not JSON: set the webhook\'s content type to application/json' };
const NO_EVENT: Answer = { outcome: 'malformed', status: 400, message: 'this is not a workflow_job event as GitHub sends it' };
const UNAVAILABLE: Answer = { outcome: 'temporal_unavailable', status: 503, message: 'Temporal does not accept the event now: deliver it again later' };
/** No runner of ours runs the job, and no set covers it. */
const NOT_OURS: Answer = { outcome: 'not_ours', status: 204 };

/** Adds the route to the server. */
export async function registerWebhook(server: FastifyInstance, options: WebhookOptions): Promise<void> {
  const { maxInFlight = 1_000 } = options;
  const receiver = new Receiver(options);
  let inFlight = 0;
  const finish = async (reply: FastifyReply, { outcome, status, message }: Answer): Promise<FastifyReply> => {
    options.onDelivery?.(outcome);
    return message === undefined ? await reply.code(status).send() : await reply.code(status).type('application/json').send({ message });
  };
  // In a scope of its own: here a body is the bytes that were signed, not what they mean.
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.addHook('onRequest', async (request, reply) => {
      inFlight++;
      reply.raw.once('close', () => inFlight--);
      if (inFlight > maxInFlight) return await finish(reply, OVERLOADED);
      // Told before a body is read that cannot be good.
      if (!SIGNATURE.test(String(request.headers['x-hub-signature-256']))) return await finish(reply, receiver.badSignature(request.headers));
      return undefined;
    });
    scope.setErrorHandler<FastifyError>(async (error, _request, reply) => {
      if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return await finish(reply, TOO_LARGE);
      throw error;
    });
    scope.post(WEBHOOK_PATH, { bodyLimit: BODY_LIMIT }, async (request, reply) => await finish(reply, await receiver.receive(request.headers, request.body)));
  });
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

class Receiver {
  readonly #options: WebhookOptions;
  readonly #signals: DemandSignals;
  /**
   * Deliveries that this process passes on or has passed on: one that arrives again while the first is under way shares its fate. What
   * another replica has passed on is not known here: the sets bear repetitions.
   */
  readonly #passed = new OncePerKey<Answer>(REMEMBERED, (answer) => answer === ACCEPTED);
  readonly #log = new SparseLog();

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#signals = new DemandSignals(options.client);
  }

  badSignature(headers: Headers): Answer {
    this.#log.line('bad_signature', (leftOut) =>
      this.#options.logger.warn({ delivery: header(headers, 'x-github-delivery'), leftOut }, 'webhook delivery with a wrong signature refused: is its secret the one of HOLDFAST_WEBHOOK_SECRET or HOLDFAST_WEBHOOK_SECRET_FILE?'),
    );
    return BAD_SIGNATURE;
  }

  async receive(headers: Headers, body: unknown): Promise<Answer> {
    const text = Buffer.isBuffer(body) ? body.toString('utf8') : '';
    const signature = header(headers, 'x-hub-signature-256');
    if (!(await this.#isSigned(text, signature))) return this.badSignature(headers);
    const event = header(headers, 'x-github-event');
    if (event === 'ping') return PONG;
    const json = parse(text);
    if (json === undefined) return NO_JSON;
    const read = readDelivery(event, json, Date.now());
    if (read.kind === 'ignored') return { outcome: read.why, status: 204 };
    if (read.kind === 'malformed') return NO_EVENT;
    // The id is not signed. With the signature it stands for this body alone, and nobody can make us miss another.
    const delivery = header(headers, 'x-github-delivery');
    if (delivery === '') return await this.#pass(read.news, delivery);
    const { result, repeated } = await this.#passed.do(`${delivery} ${signature}`, async () => await this.#pass(read.news, delivery));
    return repeated && result === ACCEPTED ? REPEATED : result;
  }

  /** Never throws: that Temporal does not accept the event is an answer. */
  async #pass(news: JobNews, delivery: string): Promise<Answer> {
    const { client, logger, onJob, deadlineMs = 8_000 } = this.#options;
    const deadline = AbortSignal.timeout(deadlineMs);
    try {
      const telling = client().withDeadline(Date.now() + deadlineMs, async () => await this.#tell(news, deadline));
      const { told, runBy } = await within(deadline, telling);
      if (runBy !== undefined) onJob?.(runBy, news);
      if (told) return ACCEPTED;
      const { repository, labels } = news.event;
      this.#log.line('not_ours', (leftOut) =>
        logger.info({ repository, labels: labels.slice(0, 20).map((label) => label.slice(0, 100)), leftOut }, 'webhook event of a job that no runner set covers and no runner of ours runs: nothing to do'),
      );
      return NOT_OURS;
    } catch (error) {
      this.#log.line('temporal_unavailable', (leftOut) => logger.error({ err: error, delivery, leftOut }, 'webhook delivery not passed on: Temporal does not accept it'));
      return UNAVAILABLE;
    }
  }

  /**
   * Resolves when Temporal has the event for all whom it concerns: the runner that runs the job, the set that has to serve it, and the set
   * whose runner runs it.
   * @throws SetsUnknownError, what Temporal's client throws, or the reason of `signal`; some may have been told then: they all bear being
   *   told again
   */
  async #tell(news: JobNews, signal: AbortSignal): Promise<{ told: boolean; runBy: string | undefined }> {
    const { runner } = news;
    const client = this.#options.client();
    const found = runner === undefined ? [] : await findRunners(client, this.#options.taskQueue, runner.name);
    const runBy = found.find(({ set }) => set !== undefined)?.set;
    const told = await Promise.all([
      this.#tellSets(news, found.flatMap(({ set }) => (set === undefined ? [] : [setWorkflowId(set)])), signal),
      ...(runner === undefined ? [] : found.filter(({ running }) => running).map(async ({ workflowId }) => await tellRunner(client, workflowId, runner.event))),
    ]);
    return { told: told.includes(true), runBy };
  }

  /** @param own - sets whose runner runs the job: they learn that it is busy, or free again @returns whether any has the event */
  async #tellSets(news: JobNews, own: readonly string[], signal: AbortSignal): Promise<boolean> {
    for (let again = false; ; again = true) {
      const { chosen, running } = await this.#options.sets.choose(news, again);
      const ids = [...new Set([...(chosen === undefined ? [] : [chosen]), ...own.filter((id) => running.has(id))])];
      const told = await Promise.all(ids.map(async (id) => await this.#signals.send(id, news.event, signal)));
      // Ended since it was listed: the job is for whichever set covers it now.
      if (again || chosen === undefined || told[0]) return told.includes(true);
    }
  }

  /** Constant-time over the raw body, for each secret. */
  async #isSigned(text: string, signature: string): Promise<boolean> {
    if (text === '') return false;
    let known: readonly string[];
    try {
      known = this.#options.secrets();
    } catch (error) {
      this.#log.line('no_secret', () => this.#options.logger.error({ err: error }, 'the webhook secret cannot be read: deliveries are refused until it can'));
      return false;
    }
    const results = await Promise.all(known.map(async (secret) => await verify(secret, text, signature)));
    return results.includes(true);
  }
}

/** Cut to a size that is fit for a log. */
function header(headers: Headers, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value.slice(0, 100) : '';
}

async function within<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const onAbort = (): void => late.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
