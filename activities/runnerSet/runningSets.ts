/**
 * Lists the running sets and the jobs that each serves, with one visibility list for all callers
 * within a few seconds.
 */
import type { Client } from '@temporalio/client';
import { SingleFlight } from '../ciServers/singleFlight.ts';
import type { SetRoutingInfo } from '../../core/contract/index.ts';
import { JobRouter, type RoutableSet } from '../../core/domain/jobRouting.ts';
import { withNormalizedLabels } from './normalizedRouting.ts';
import { listRoutingInfo, PAGE } from './listRoutingInfo.ts';

/** Options of {@link RunningSets}. */
export interface RunningSetsOptions {
  /**
   * Returns the current client.
   * @throws Error if there is no connection to Temporal
   */
  readonly client: () => Client;
  /** Task queue of the sets. */
  readonly taskQueue: string;
  /**
   * Adds the routing of sets whose memo does not contain it.
   * @default such sets are `unknown`
   */
  readonly ask?: (covers: Map<string, SetRoutingInfo | undefined>, at: number) => Promise<void>;
  /** Called when a list cannot be read. The sets of the last one are used for up to 10 minutes. */
  readonly onFailure?: (error: unknown) => void;
  readonly now?: () => number;
}

/** The sets at one moment. */
export interface SetsSnapshot {
  /** Start of the list request (ms since the epoch). */
  readonly at: number;
  /** Sets whose routing is known, with normalized labels. */
  readonly sets: readonly RoutableSet[];
  readonly routing: JobRouter<RoutableSet>;
  /**
   * Workflow IDs of running sets whose routing is unknown, because they are starting or no worker
   * answers. They may serve any job.
   */
  readonly unknown: readonly string[];
  /** Workflow IDs of all running sets. */
  readonly ids: ReadonlySet<string>;
  /** Whether it is older than requested, because no newer list can be read. */
  readonly stale?: true;
}

/** Maximum number of sets listed. */
const MAX_SETS = 5_000;
/**
 * Deadline of a list request (ms). Other callers wait for the same request, so it must not hang.
 */
const LIST_DEADLINE_MS = 3_000;
/**
 * Maximum age of a list that is used while no newer one can be read (ms). Sets change rarely, and
 * the periodic check of queued jobs finds what an old list has routed to no set.
 */
const MAX_STALE_MS = 10 * 60_000;
/** Time to wait before the next request after a failed one, while an old list is used (ms). */
const RETRY_MS = 5_000;

/**
 * Cached list of the running sets and the jobs that each serves. All callers within a few seconds
 * share one list request.
 */
export class RunningSets {
  readonly #options: RunningSetsOptions;
  readonly #now: () => number;
  readonly #lists = new SingleFlight(async () => await this.#lookAndKeep());
  #cached: SetsSnapshot | undefined;
  /** Sets of the latest list, and those that were missing from it. */
  #listed = new Map<string, SetRoutingInfo | undefined>();
  #missing: ReadonlySet<string> = new Set();
  #refresh = false;
  #failedAt = -Infinity;

  constructor(options: RunningSetsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * Returns the sets as of at most `maxAgeMs` ago, or of up to 10 minutes ago while they cannot be
   * listed. With several pages of sets, the limit is multiplied by the number of pages.
   * @param maxAgeMs - maximum age (ms). 0 lists the sets now and keeps no set that is missing from
   * the list
   * @throws the error of the Temporal client if the sets cannot be listed, and the last list is
   * older than 10 minutes or `maxAgeMs` is 0
   */
  async list(maxAgeMs: number): Promise<SetsSnapshot> {
    if (maxAgeMs === 0) this.#refresh = true;
    const since = this.#now() - maxAgeMs * Math.max(1, Math.ceil(this.#listed.size / PAGE));
    const kept = (): SetsSnapshot | undefined =>
      this.#cached !== undefined && this.#cached.at >= since ? this.#cached : undefined;
    const recent =
      kept() ?? (this.#now() < this.#failedAt + RETRY_MS ? this.#old(maxAgeMs) : undefined);
    if (recent !== undefined) return recent;
    // A running request may have started too early, or failed because of an outage that has ended.
    const failed = await this.#lists.run().then(
      () => false,
      () => true,
    );
    return kept() ?? (failed ? this.#old(maxAgeMs) : undefined) ?? (await this.#lists.run());
  }

  /** Returns the age of the list in use (ms), or `undefined` before the first one. */
  get ageMs(): number | undefined {
    return this.#cached === undefined ? undefined : this.#now() - this.#cached.at;
  }

  #old(maxAgeMs: number): SetsSnapshot | undefined {
    const cached = this.#cached;
    return maxAgeMs === 0 || cached === undefined || cached.at < this.#now() - MAX_STALE_MS
      ? undefined
      : { ...cached, stale: true };
  }

  async #lookAndKeep(): Promise<SetsSnapshot> {
    try {
      this.#cached = await this.#read();
      this.#failedAt = -Infinity;
      return this.#cached;
    } catch (error) {
      this.#failedAt = this.#now();
      this.#options.onFailure?.(error);
      throw error;
    }
  }

  async #read(): Promise<SetsSnapshot> {
    const at = this.#now();
    const client = this.#options.client();
    const covers = await client.withDeadline(
      Date.now() + LIST_DEADLINE_MS,
      async () => await listRoutingInfo(client, this.#options.taskQueue, MAX_SETS),
    );
    this.#keepMissing(covers);
    await this.#options.ask?.(covers, at);
    this.#listed = covers;
    const sets = [...covers].flatMap(([workflowId, routing]) =>
      routing === undefined ? [] : [{ workflowId, routing: withNormalizedLabels(routing) }],
    );
    return {
      at,
      sets,
      routing: new JobRouter(sets),
      unknown: [...covers].flatMap(([workflowId, routing]) =>
        routing === undefined ? [workflowId] : [],
      ),
      ids: new Set(covers.keys()),
    };
  }

  /**
   * Keeps sets that are missing from one list. A set that continues as new may be missing from
   * visibility for a moment, and its jobs must not go to another set.
   */
  #keepMissing(covers: Map<string, SetRoutingInfo | undefined>): void {
    const missing = this.#refresh
      ? []
      : [...this.#listed].filter(
          ([workflowId]) => !covers.has(workflowId) && !this.#missing.has(workflowId),
        );
    this.#refresh = false;
    for (const [workflowId, routing] of missing) covers.set(workflowId, routing);
    this.#missing = new Set(missing.map(([workflowId]) => workflowId));
  }
}
