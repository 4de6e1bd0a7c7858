/** The running sets and the jobs that each covers: from visibility, remembered for a few seconds. */
import type { Client } from '@temporalio/client';
import pMap from 'p-map';
import type { Logger } from 'pino';
import { SingleFlight } from '../../activities/ciServers/singleFlight.ts';
import { listCovers } from '../../activities/sets/listCovers.ts';
import { setStatusQuery, type RunnerSetStatus, type SetCover } from '../../core/contract/index.ts';
import { chooseSet, type CoveringSet } from '../../core/domain/jobRouting.ts';
import type { JobNews } from './webhookDelivery.ts';

export interface CoveringSetsOptions {
  /** The client of now. @throws Error while there is no connection to Temporal */
  readonly client: () => Client;
  /** Sets of this task queue are ours. */
  readonly taskQueue: string;
  readonly logger: Pick<Logger, 'warn'>;
  readonly now?: () => number;
}

/** The sets at one moment. */
export interface SetsNow {
  readonly sets: readonly CoveringSet[];
  /** Running sets of which nobody knows what they cover (they are just starting, or no worker answers): they may cover anything. */
  readonly unknown: readonly string[];
}

/** Nobody knows yet what a running set covers, and none of the others covers the job: it may be that one's. */
export class SetsUnknownError extends Error {
  override readonly name = 'SetsUnknownError';
}

interface Answer {
  readonly cover: SetCover;
  readonly at: number;
}

/** How old the sets may be that an event is matched against. */
const SETS_AGE_MS = 5_000;
/** How old, before it is said that no set covers a job: jobs for other runners are many, and must not cost a look each. */
const UNCOVERED_AGE_MS = 250;
/** More sets than this are not looked at. */
const MAX_SETS = 1_000;
/** A set without a worker must not hold up the others' events. */
const QUERY_DEADLINE_MS = 2_000;
const QUERIES_AT_ONCE = 20;
/** Whoever comes meanwhile waits for the same look: one that hangs must not keep them all. */
const LIST_DEADLINE_MS = 3_000;

export class CoveringSets {
  readonly #options: CoveringSetsOptions;
  readonly #now: () => number;
  readonly #looks = new SingleFlight(async () => (this.#kept = await this.#look()));
  #kept: (SetsNow & { readonly at: number }) | undefined;
  /** What sets without a memo last said, by workflow id: of one that does not answer now, better than nothing. */
  #answers = new Map<string, Answer>();
  readonly #silent = new Set<string>();

  constructor(options: CoveringSetsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * The set that has to serve the job, and all that run.
   * @param afresh - the one that was chosen before has ended since: look again
   * @throws SetsUnknownError, or what Temporal's client throws when the sets cannot be listed
   */
  async choose({ event, enterprise }: JobNews, afresh: boolean): Promise<{ chosen: string | undefined; running: ReadonlySet<string> }> {
    let now = await this.list(afresh ? 0 : SETS_AGE_MS);
    let chosen = chooseSet(event, enterprise, now.sets);
    if (chosen === undefined) {
      now = await this.list(UNCOVERED_AGE_MS);
      chosen = chooseSet(event, enterprise, now.sets);
    }
    if (chosen === undefined && now.unknown.length > 0) throw new SetsUnknownError(`no set is known to cover the job, and ${now.unknown.join(', ')} did not say what it covers`);
    return { chosen: chosen?.workflowId, running: new Set([...now.sets.map(({ workflowId }) => workflowId), ...now.unknown]) };
  }

  /**
   * The sets as they were at most `maxAgeMs` ago.
   * @throws what Temporal's client throws when the sets cannot be listed
   */
  async list(maxAgeMs: number): Promise<SetsNow> {
    const since = this.#now() - maxAgeMs;
    const kept = (): SetsNow | undefined => (this.#kept !== undefined && this.#kept.at >= since ? this.#kept : undefined);
    // A look that is under way may have begun too early, or have met an outage that is over.
    if (kept() === undefined) await this.#looks.join().catch(() => undefined);
    return kept() ?? (await this.#looks.join());
  }

  /** Status of a set; the query needs a worker. */
  async status(workflowId: string): Promise<RunnerSetStatus> {
    const client = this.#options.client();
    return await client.withDeadline(Date.now() + QUERY_DEADLINE_MS, async () => await client.workflow.getHandle(workflowId).query(setStatusQuery));
  }

  async #look(): Promise<SetsNow & { at: number }> {
    const at = this.#now();
    const client = this.#options.client();
    const covers = await client.withDeadline(Date.now() + LIST_DEADLINE_MS, async () => await listCovers(client, this.#options.taskQueue, MAX_SETS));
    const answers = new Map<string, Answer>();
    const askFor = [...covers].filter(([, cover]) => cover === undefined).map(([workflowId]) => workflowId);
    await pMap(askFor, async (workflowId) => {
      const known = this.#answers.get(workflowId);
      const answer = known !== undefined && at - known.at <= SETS_AGE_MS ? known : ((await this.#ask(workflowId, at)) ?? known);
      if (answer === undefined) return;
      answers.set(workflowId, answer);
      covers.set(workflowId, answer.cover);
    }, { concurrency: QUERIES_AT_ONCE });
    this.#answers = answers;
    return {
      at,
      sets: [...covers].flatMap(([workflowId, cover]) => (cover === undefined ? [] : [{ workflowId, cover }])),
      unknown: [...covers].filter(([, cover]) => cover === undefined).map(([workflowId]) => workflowId),
    };
  }

  async #ask(workflowId: string, at: number): Promise<Answer | undefined> {
    try {
      const { labels, scope, scopeKind } = await this.status(workflowId);
      this.#silent.delete(workflowId);
      return { cover: { labels, scope, scopeKind: scopeKind ?? (scope.includes('/') ? 'repository' : 'organization') }, at };
    } catch (error) {
      if (!this.#silent.has(workflowId)) this.#options.logger.warn({ err: error, workflowId }, 'a runner set does not answer its status query');
      this.#silent.add(workflowId);
      return undefined;
    }
  }
}
