/**
 * Cache of the running sets and the jobs that each serves, read from visibility every few seconds.
 */
import type { Client } from '@temporalio/client';
import pMap from 'p-map';
import type { Logger } from 'pino';
import { RunningSets, type SetsSnapshot } from '../../activities/runnerSet/runningSets.ts';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { type RunnerSetStatus, type SetRoutingInfo } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { RateLimitedLogger } from '../process/rateLimitedLogger.ts';
import type { JobDelivery } from './jobDelivery.ts';

/** Options of {@link SetDirectory}. */
export interface CoveringSetsOptions {
  /**
   * Returns the current client.
   * @throws Error if there is no connection to Temporal
   */
  readonly client: () => Client;
  /** Task queue of the sets. */
  readonly taskQueue: string;
  readonly logger: Pick<Logger, 'warn'>;
  readonly now?: () => number;
}

/**
 * Error for a job that no known set serves, while the routing of a running set is unknown. That set
 * may serve the job.
 */
export class RoutingUnknownError extends Error {
  override readonly name = 'SetsUnknownError';
}

interface Answer {
  readonly routing: SetRoutingInfo;
  readonly at: number;
}

/** Maximum age of the sets for matching an event (ms). */
const SETS_AGE_MS = 5_000;
/**
 * Maximum age of the sets for deciding that no set serves a job (ms). Jobs for other runners are
 * frequent, and Temporal permits a namespace 10 visibility requests per second by default.
 */
const UNCOVERED_AGE_MS = 2_000;
/** Deadline of a query (ms). A set without a worker must not delay the events of others. */
const QUERY_DEADLINE_MS = 2_000;
const QUERIES_AT_ONCE = 20;

/** Finds the set that must serve a job, from a list of running sets that is a few seconds old. */
export class SetDirectory {
  readonly #options: CoveringSetsOptions;
  readonly #running: RunningSets;
  /**
   * Latest answer of each set without a memo, by workflow ID. It is used while the set does not
   * answer.
   */
  #answers = new Map<string, Answer>();
  readonly #silent = new Set<string>();
  readonly #log = new RateLimitedLogger();

  constructor(options: CoveringSetsOptions) {
    this.#options = options;
    this.#running = new RunningSets({
      ...options,
      ask: async (covers, at) => await this.#askAll(covers, at),
      onFailure: (error) =>
        this.#log.line('list', (suppressed) =>
          options.logger.warn(
            { err: error, suppressed, ageMs: this.ageMs },
            'failed to list the runner sets; job events are routed by the last list for up to 10 minutes',
          ),
        ),
    });
  }

  /**
   * Returns the set that must serve the job, and all running sets.
   * @param afresh - whether to read the list again, because the set chosen before has ended
   * @throws RoutingUnknownError if no known set serves the job and the routing of a running set is
   * unknown
   * @throws the error of the Temporal client if the sets cannot be listed
   */
  async route(
    { event, ...origin }: JobDelivery,
    afresh: boolean,
  ): Promise<{ chosen: string | undefined; running: ReadonlySet<string> }> {
    let now = await this.list(afresh ? 0 : SETS_AGE_MS);
    let chosen = now.routing.setFor(event, origin);
    if (chosen === undefined) {
      now = await this.list(UNCOVERED_AGE_MS);
      chosen = now.routing.setFor(event, origin);
    }
    if (chosen === undefined && now.unknown.length > 0)
      throw new RoutingUnknownError(
        `no known set serves the job, and ${now.unknown.slice(0, 10).join(', ')} did not answer with its labels`,
      );
    return { chosen: chosen?.workflowId, running: now.ids };
  }

  /** Returns the age of the list in use (ms), or `undefined` before the first one. */
  get ageMs(): number | undefined {
    return this.#running.ageMs;
  }

  /** Returns the sets as {@link RunningSets.list} does. */
  async list(maxAgeMs: number): Promise<SetsSnapshot> {
    return await this.#running.list(maxAgeMs);
  }

  /** Returns the status of a set without its runners. The query needs a worker. */
  async status(workflowId: string): Promise<RunnerSetStatus> {
    const client = this.#options.client();
    return await client.withDeadline(
      Date.now() + QUERY_DEADLINE_MS,
      async () => await querySetStatus(client, workflowId, { max: 0 }),
    );
  }

  async #askAll(covers: Map<string, SetRoutingInfo | undefined>, at: number): Promise<void> {
    const answers = new Map<string, Answer>();
    const askFor = [...covers]
      .filter(([, routing]) => routing === undefined)
      .map(([workflowId]) => workflowId);
    await pMap(
      askFor,
      async (workflowId) => {
        const known = this.#answers.get(workflowId);
        const answer =
          known !== undefined && at - known.at <= SETS_AGE_MS
            ? known
            : ((await this.#ask(workflowId, at)) ?? known);
        if (answer === undefined) return;
        answers.set(workflowId, answer);
        covers.set(workflowId, answer.routing);
      },
      { concurrency: QUERIES_AT_ONCE },
    );
    this.#answers = answers;
  }

  async #ask(workflowId: string, at: number): Promise<Answer | undefined> {
    try {
      const { ciServer, labels, scope, scopeKind, groupJobs } = await this.status(workflowId);
      this.#silent.delete(workflowId);
      return {
        routing: {
          ...omitUndefined({ ciServer, groupJobs }),
          labels,
          scope,
          scopeKind: scopeKind ?? (scope.includes('/') ? 'repository' : 'organization'),
        },
        at,
      };
    } catch (error) {
      if (!this.#silent.has(workflowId))
        this.#options.logger.warn(
          { err: error, workflowId },
          'a runner set does not answer its status query',
        );
      this.#silent.add(workflowId);
      return undefined;
    }
  }
}
