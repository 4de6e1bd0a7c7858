/** The running sets and the jobs that each covers: from visibility, remembered for a few seconds. */
import type { Client } from '@temporalio/client';
import pMap from 'p-map';
import type { Logger } from 'pino';
import { RunningSets, type SetsSnapshot } from '../../activities/runnerSet/runningSets.ts';
import {
  setStatusQuery,
  type RunnerSetStatus,
  type SetRoutingInfo,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { JobDelivery } from './jobDelivery.ts';

export interface CoveringSetsOptions {
  /** The client of now. @throws Error while there is no connection to Temporal */
  readonly client: () => Client;
  /** Sets of this task queue are ours. */
  readonly taskQueue: string;
  readonly logger: Pick<Logger, 'warn'>;
  readonly now?: () => number;
}

/** Nobody knows yet what a running set covers, and none of the others covers the job: it may be that one's. */
export class RoutingUnknownError extends Error {
  override readonly name = 'SetsUnknownError';
}

interface Answer {
  readonly routing: SetRoutingInfo;
  readonly at: number;
}

/** How old the sets may be that an event is matched against. */
const SETS_AGE_MS = 5_000;
/** How old, before it is said that no set covers a job: jobs for other runners are many, and Temporal allows a namespace 10 looks a second by default. */
const UNCOVERED_AGE_MS = 2_000;
/** A set without a worker must not hold up the others' events. */
const QUERY_DEADLINE_MS = 2_000;
const QUERIES_AT_ONCE = 20;

export class SetDirectory {
  readonly #options: CoveringSetsOptions;
  readonly #running: RunningSets;
  /** What sets without a memo last said, by workflow id: of one that does not answer now, better than nothing. */
  #answers = new Map<string, Answer>();
  readonly #silent = new Set<string>();

  constructor(options: CoveringSetsOptions) {
    this.#options = options;
    this.#running = new RunningSets({
      ...options,
      ask: async (covers, at) => await this.#askAll(covers, at),
    });
  }

  /**
   * The set that has to serve the job, and all that run.
   * @param afresh - the one that was chosen before has ended since: look again
   * @throws SetsUnknownError, or what Temporal's client throws when the sets cannot be listed
   */
  async route(
    { event, ...origin }: JobDelivery,
    afresh: boolean,
  ): Promise<{ chosen: string | undefined; running: ReadonlySet<string> }> {
    let now = await this.list(afresh ? 0 : SETS_AGE_MS);
    let chosen = now.routing.homeOf(event, origin);
    if (chosen === undefined) {
      now = await this.list(UNCOVERED_AGE_MS);
      chosen = now.routing.homeOf(event, origin);
    }
    if (chosen === undefined && now.unknown.length > 0)
      throw new RoutingUnknownError(
        `no set is known to serve the job, and ${now.unknown.slice(0, 10).join(', ')} did not say what it covers`,
      );
    return { chosen: chosen?.workflowId, running: now.ids };
  }

  /** As {@link RunningSets.list}. */
  async list(maxAgeMs: number): Promise<SetsSnapshot> {
    return await this.#running.list(maxAgeMs);
  }

  /** Status of a set; the query needs a worker. */
  async status(workflowId: string): Promise<RunnerSetStatus> {
    const client = this.#options.client();
    return await client.withDeadline(
      Date.now() + QUERY_DEADLINE_MS,
      async () => await client.workflow.getHandle(workflowId).query(setStatusQuery),
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
