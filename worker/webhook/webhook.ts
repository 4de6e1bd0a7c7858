/**
 * Receives deliveries about jobs, for each kind of CI server at `/webhooks/<server>`. Answers 2xx
 * only after Temporal has accepted the event for all its recipients, and otherwise 503: the server
 * then shows the delivery as failed, and can redeliver it. It keeps no essential state, so any
 * number of replicas may receive.
 */
import type { IncomingMessage } from 'node:http';
import type { Client } from '@temporalio/client';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { setWorkflowId, type RunnerJobEvent } from '../../core/contract/index.ts';
import { setNameFromRunnerName } from '../../core/domain/setRunnerNames.ts';
import { RateLimitedLogger } from '../process/rateLimitedLogger.ts';
import { BodyMemoryLimit, BodyRejectedError } from './bodyMemoryLimit.ts';
import { RoutingUnknownError, type SetDirectory } from './setDirectory.ts';
import { JobEventBatcher } from './jobEventBatcher.ts';
import { signalRerun } from './signalRerun.ts';
import { signalRunner } from './signalRunner.ts';
import { DeduplicatedCalls } from './deduplicatedCalls.ts';
import { headerRejection } from './headerRejection.ts';
import type { JobDelivery } from './jobDelivery.ts';
import type { Headers } from './requestHeaders.ts';
import { DelayedRunnerSignals } from './delayedRunnerSignals.ts';
import type { DeliveryFormat, DeliverySpan } from './servers/deliveryFormat.ts';
import { DELIVERY_FORMATS, webhookPath } from './servers/deliveryFormats.ts';
import {
  ACCEPTED,
  BAD_SIGNATURE,
  BODY_LIMIT,
  NO_LABELS,
  NO_MATCH,
  OVERLOADED,
  DUPLICATE,
  UNAVAILABLE,
  type WebhookResponse,
} from './webhookResponses.ts';

/** Options of the webhook. */
export interface WebhookOptions {
  /**
   * Returns the current client.
   * @throws Error if there is no connection to Temporal
   */
  readonly client: () => Client;
  /** Returns the current secrets. A delivery signed with any of them is accepted. */
  readonly secrets: () => readonly string[];
  /** Task queue of the runners and sets. */
  readonly taskQueue: string;
  readonly sets: SetDirectory;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Called with the outcome of each delivery, for metrics. */
  readonly onDelivery?: (outcome: string) => void;
  /** Called for each event of a job on a runner of a set, for metrics. */
  readonly onJob?: (set: string, job: JobDelivery) => void;
  /**
   * Time to wait before the runner of a set gets an event that its set has (ms). See {@link
   * DelayedRunnerSignals}.
   * @default 5000
   */
  readonly runnerSignalDelayMs?: number;
  /** Called with the workflow ID of each runner that has received the start of its job. */
  readonly onJobStarted?: (workflowId: string) => void;
  /** Time for Temporal to accept an event (ms). GitHub gives up after 10 s. @default 8000 */
  readonly deadlineMs?: number;
  /** Maximum number of deliveries in progress. Others get 503. @default 1000 */
  readonly maxInFlight?: number;
  /** Maximum total size of the bodies in transit (bytes). @default 16777216 */
  readonly bodyBudget?: number;
  /**
   * Delivery formats of the CI servers to serve.
   * @default all
   */
  readonly formats?: readonly DeliveryFormat[];
  /**
   * Records the span of a delivery.
   * @default deliveries are not traced
   */
  readonly traces?: TraceDelivery | undefined;
}

/** Runs `pass` in the span of a delivery, with the span's `traceparent` if it is recorded. */
export type TraceDelivery = (
  span: DeliverySpan,
  pass: (trace?: string) => Promise<WebhookResponse>,
) => Promise<WebhookResponse>;

/** Deadline of a delivery (ms). GitHub gives up after 10 s. */
const DEADLINE_MS = 8_000;
/** Maximum number of deliveries that are remembered. */
const REMEMBERED = 10_000;
/**
 * Maximum total size of the bodies in transit (bytes): two thousand deliveries of 8 KiB, the usual
 * size at GitHub.
 */
const BODY_BUDGET = 16 * 1024 * 1024;
/** Value of Retry-After in a response with 503 (s; RFC 9110, 10.2.3). */
const RETRY_AFTER_S = 10;

/** Adds a route for each kind of CI server, and a response for all other paths. */
export async function registerWebhook(
  server: FastifyInstance,
  options: WebhookOptions,
): Promise<void> {
  const { formats = DELIVERY_FORMATS, bodyBudget = BODY_BUDGET } = options;
  const receiver = new Receiver(options);
  server.addHook('onClose', async () => await receiver.close());
  const bodies = new BodyMemoryLimit(bodyBudget);
  const finish = async (
    reply: FastifyReply,
    { outcome, status, message }: WebhookResponse,
  ): Promise<FastifyReply> => {
    options.onDelivery?.(outcome);
    if (status === 503) reply.header('retry-after', RETRY_AFTER_S);
    return message === undefined
      ? await reply.code(status).send()
      : await reply.code(status).type('application/json').send({ message });
  };
  for (const format of formats)
    await server.register(async (scope) => addRoute(scope, format, { receiver, bodies, finish }));
  rejectUnknownServers(server, formats);
}

interface RouteParts {
  readonly receiver: Receiver;
  readonly bodies: BodyMemoryLimit;
  readonly finish: (reply: FastifyReply, response: WebhookResponse) => Promise<FastifyReply>;
}

/**
 * Adds the route of one CI server.
 * @param scope - separate Fastify scope, because here a body is the signed bytes
 */
function addRoute(
  scope: FastifyInstance,
  format: DeliveryFormat,
  { receiver, bodies, finish }: RouteParts,
): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    '*',
    async (_request: FastifyRequest, payload: IncomingMessage) => await bodies.read(payload),
  );
  scope.addHook('onRequest', async ({ headers }, reply) => {
    const rejection = headerRejection(format, headers);
    return rejection === undefined
      ? undefined
      : await finish(reply, receiver.reject(rejection, format, headers));
  });
  scope.setErrorHandler(async (error, { headers }, reply) => {
    if (!(error instanceof BodyRejectedError)) throw error;
    const answer = receiver.reject(error.answer, format, headers);
    return await finish(reply.removeHeader('connection'), answer);
  });
  scope.post(webhookPath(format.server), { bodyLimit: BODY_LIMIT }, async (request, reply) => {
    const { headers, body } = request;
    request.body = undefined; // frees the memory while the delivery waits for Temporal
    return await finish(reply, await receiver.receive(format, headers, body));
  });
}

/** Rejects deliveries for unknown CI servers before their body is read. */
function rejectUnknownServers(server: FastifyInstance, formats: readonly DeliveryFormat[]): void {
  const servers = formats.map((format) => format.server);
  const answer = {
    message: `unknown CI server in the path; must be one of ${servers.map(webhookPath).join(', ')}`,
    servers,
  };
  const respond = async (_request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    await reply.code(404).send(answer);
  server.post(webhookPath(':server'), { onRequest: respond }, respond);
}

class Receiver {
  readonly #options: WebhookOptions;
  readonly #setSignals: JobEventBatcher;
  readonly #runnerSignals: DelayedRunnerSignals;
  /**
   * Deliveries that this process is passing on or has passed on. A repetition gets the response of
   * the first, also while that is in progress. Other replicas do not know them; sets tolerate
   * repetitions.
   */
  readonly #passed = new DeduplicatedCalls<WebhookResponse>(
    REMEMBERED,
    (answer) => answer === ACCEPTED,
  );
  readonly #log = new RateLimitedLogger();
  #inFlight = 0;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#setSignals = new JobEventBatcher(options.client);
    this.#runnerSignals = new DelayedRunnerSignals(
      // Use a separate deadline: that of the delivery, the default, has passed by then.
      async (name, event) =>
        await options
          .client()
          .withDeadline(
            Date.now() + (options.deadlineMs ?? DEADLINE_MS),
            async () => await this.#signalRunner(name, event),
          ),
      (error) =>
        this.#log.line('runner_signal', (leftOut) =>
          options.logger.warn(
            { err: error, leftOut },
            'failed to signal a runner about its job; its set was notified',
          ),
        ),
      options.runnerSignalDelayMs,
    );
  }

  /** Sends the delayed signals. */
  async close(): Promise<void> {
    this.#setSignals.close();
    await this.#runnerSignals.close();
  }

  /** Logs why a delivery is rejected. */
  reject(answer: WebhookResponse, format: DeliveryFormat, headers: Headers): WebhookResponse {
    const hint =
      answer === BAD_SIGNATURE
        ? '; check that its secret is in HOLDFAST_WEBHOOK_SECRET or HOLDFAST_WEBHOOK_SECRET_FILE'
        : '';
    this.#log.line(answer.outcome, (leftOut) =>
      this.#options.logger.warn(
        { server: format.server, delivery: format.deliveryId(headers), leftOut },
        `webhook delivery rejected: ${answer.message}${hint}`,
      ),
    );
    return answer;
  }

  async receive(format: DeliveryFormat, headers: Headers, body: unknown): Promise<WebhookResponse> {
    const read = this.#read(format, headers, body);
    if (!('event' in read)) return read.status < 400 ? read : this.reject(read, format, headers);
    const { maxInFlight = 1_000 } = this.#options;
    if (this.#inFlight >= maxInFlight) return this.reject(OVERLOADED, format, headers);
    this.#inFlight++;
    try {
      const { result, repeated } = await this.#passed.run(
        `${format.server} ${format.repetitionKey(headers)}`,
        async () => await this.#passTraced(format, read, format.deliveryId(headers)),
      );
      return repeated && result === ACCEPTED ? DUPLICATE : result;
    } finally {
      this.#inFlight--;
    }
  }

  #read(format: DeliveryFormat, headers: Headers, body: unknown): JobDelivery | WebhookResponse {
    const secrets = this.#secrets();
    return Buffer.isBuffer(body) && format.isSigned(headers, body, secrets)
      ? format.read(headers, body, Date.now())
      : BAD_SIGNATURE;
  }

  async #passTraced(
    format: DeliveryFormat,
    job: JobDelivery,
    delivery: string,
  ): Promise<WebhookResponse> {
    const { traces } = this.#options;
    return traces === undefined
      ? await this.#dispatch(job, delivery)
      : await traces(
          format.span(job, delivery),
          async (trace) => await this.#dispatch(traced(job, trace), delivery),
        );
  }

  /** Passes an event on. Never throws: a rejection by Temporal is a response. */
  async #dispatch(job: JobDelivery, delivery: string): Promise<WebhookResponse> {
    const { client, logger, deadlineMs = DEADLINE_MS } = this.#options;
    const deadline = AbortSignal.timeout(deadlineMs);
    try {
      const dispatching = client().withDeadline(
        Date.now() + deadlineMs,
        async () => await this.#dispatchJob(job, deadline),
      );
      if (await withTimeout(deadline, dispatching)) return ACCEPTED;
      const answer = job.event.labels.length === 0 ? NO_LABELS : NO_MATCH;
      this.#logUnmatched(answer, job);
      return answer;
    } catch (error) {
      this.#log.line('temporal_unavailable', (leftOut) =>
        logger.error(
          { err: error, delivery, leftOut },
          'webhook delivery not passed on: Temporal does not accept it',
        ),
      );
      return UNAVAILABLE;
    }
  }

  async #dispatchJob(job: JobDelivery, signal: AbortSignal): Promise<boolean> {
    const { accepted, runBy } = await this.#notifyJob(job, signal);
    if (runBy !== undefined) this.#options.onJob?.(runBy, job);
    return accepted;
  }

  #logUnmatched(
    { outcome }: WebhookResponse,
    { event: { repository, labels } }: JobDelivery,
  ): void {
    this.#log.line(outcome, (leftOut) =>
      this.#options.logger.info(
        { repository, labels: labels.slice(0, 20).map((label) => label.slice(0, 100)), leftOut },
        outcome === NO_LABELS.outcome
          ? 'webhook event of a job without labels that no runner of ours runs: only sets with groupJobs serve such jobs'
          : 'webhook event of a job that no runner set covers and no runner of ours runs: nothing to do',
      ),
    );
  }

  /**
   * Sends an event to its recipients: the runner that runs the job, the set that has to serve it,
   * and the set of the runner. Resolves when Temporal has accepted it for all of them.
   * @throws RoutingUnknownError, the error of the Temporal client, or the reason of `signal`. Some
   * recipients may then have the event; all tolerate repetitions
   */
  async #notifyJob(
    job: JobDelivery,
    signal: AbortSignal,
  ): Promise<{ accepted: boolean; runBy: string | undefined }> {
    const { runner } = job;
    const set = runner === undefined ? undefined : setNameFromRunnerName(runner.name);
    const sets = await this.#notifySets(job, set, signal);
    // A completed job that failed is reported immediately: the time shows whether it was
    // interrupted.
    const mayWait =
      sets.ownAccepted &&
      (runner?.event.action !== 'completed' || runner.event.conclusion === 'success');
    if (runner !== undefined && mayWait) this.#runnerSignals.schedule(runner.name, runner.event);
    const runnerAccepted =
      runner !== undefined && !mayWait && (await this.#signalRunner(runner.name, runner.event));
    if (runner !== undefined) await signalRerun(this.#options.client(), runner.name, runner.event);
    return { accepted: sets.accepted || runnerAccepted, runBy: sets.ownRunning ? set : undefined };
  }

  /** @returns whether such a runner is running */
  async #signalRunner(name: string, event: RunnerJobEvent): Promise<boolean> {
    const { client, onJobStarted } = this.#options;
    const workflowId = await signalRunner(client(), name, event);
    // A completed event may be about an earlier runner of the workflow.
    if (workflowId !== undefined && event.action === 'in_progress') onJobStarted?.(workflowId);
    return workflowId !== undefined;
  }

  /**
   * Sends an event to the sets that it concerns.
   * @param own - set whose runner may run the job. The event shows whether the runner is busy
   * @returns whether any set has the event, whether `own` is running, and whether `own` has the
   * event
   */
  async #notifySets(
    job: JobDelivery,
    own: string | undefined,
    signal: AbortSignal,
  ): Promise<{ accepted: boolean; ownRunning: boolean; ownAccepted: boolean }> {
    const ownId = own === undefined ? undefined : setWorkflowId(own);
    for (let again = false; ; again = true) {
      const { chosen, running } = await this.#options.sets.route(job, again);
      const ownRunning = ownId !== undefined && running.has(ownId);
      const ids = [
        ...new Set([...(chosen === undefined ? [] : [chosen]), ...(ownRunning ? [ownId] : [])]),
      ];
      const accepted = await Promise.all(
        ids.map(async (id) => await this.#setSignals.send(id, job.event, signal)),
      );
      // The list of sets is outdated. The CI server has to redeliver the event.
      if (again && chosen !== undefined && !accepted.includes(true))
        throw new RoutingUnknownError(`${chosen} is listed, and has ended`);
      // The set has ended since it was listed. Another set may serve the job now.
      if (again || chosen === undefined || accepted[0])
        return {
          accepted: accepted.includes(true),
          ownRunning,
          ownAccepted: ownId !== undefined && accepted[ids.indexOf(ownId)] === true,
        };
    }
  }

  /** Returns the secrets. If they cannot be read there are none, so every delivery is rejected. */
  #secrets(): readonly string[] {
    try {
      return this.#options.secrets();
    } catch (error) {
      this.#log.line('no_secret', () =>
        this.#options.logger.error(
          { err: error },
          'the webhook secret cannot be read; all deliveries are rejected until it can',
        ),
      );
      return [];
    }
  }
}

/**
 * Adds the trace to the event of a queued job. The set starts a runner for it in the same trace.
 */
function traced(job: JobDelivery, traceparent: string | undefined): JobDelivery {
  if (traceparent === undefined || job.event.action !== 'queued') return job;
  return { ...job, event: { ...job.event, traceparent } };
}

async function withTimeout<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const onAbort = (): void => late.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
