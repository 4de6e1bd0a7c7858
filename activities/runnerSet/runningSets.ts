/** The running sets and the jobs that each is for: one list by visibility for all who ask within some seconds. */
import type { Client } from '@temporalio/client';
import { SingleFlight } from '../ciServers/singleFlight.ts';
import type { SetRoutingInfo } from '../../core/contract/index.ts';
import { JobRouter, type RoutableSet } from '../../core/domain/jobRouting.ts';
import { withNormalizedLabels } from './normalizedRouting.ts';
import { listRoutingInfo, PAGE } from './listRoutingInfo.ts';

export interface RunningSetsOptions {
  /** The client of now. @throws Error while there is no connection to Temporal */
  readonly client: () => Client;
  /** Sets of this task queue are ours. */
  readonly taskQueue: string;
  /** Fills in what sets serve whose memos do not say so. @default they are unknown */
  readonly ask?: (covers: Map<string, SetRoutingInfo | undefined>, at: number) => Promise<void>;
  readonly now?: () => number;
}

/** The sets at one moment. */
export interface SetsSnapshot {
  /** When the look began (ms since the epoch). */
  readonly at: number;
  /** With normalized labels. */
  readonly sets: readonly RoutableSet[];
  readonly routing: JobRouter<RoutableSet>;
  /** Running sets of which nobody knows what they serve (they are just starting, or no worker answers): they may serve anything. */
  readonly unknown: readonly string[];
  /** Workflow ids of all of them. */
  readonly ids: ReadonlySet<string>;
}

/** More sets than this are not looked at. */
const MAX_SETS = 5_000;
/** Whoever comes meanwhile waits for the same look: one that hangs must not keep them all. */
const LIST_DEADLINE_MS = 3_000;

export class RunningSets {
  readonly #options: RunningSetsOptions;
  readonly #now: () => number;
  readonly #lists = new SingleFlight(async () => (this.#cached = await this.#look()));
  #cached: SetsSnapshot | undefined;
  /** What was listed, and the sets of it that were missing since. */
  #listed = new Map<string, SetRoutingInfo | undefined>();
  #missing: ReadonlySet<string> = new Set();
  #refresh = false;

  constructor(options: RunningSetsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * The sets as they were at most `maxAgeMs` ago; as many times that as it takes requests to list them.
   * @param maxAgeMs - 0: as they are now, without those that were there before and are not listed
   * @throws what Temporal's client throws when the sets cannot be listed
   */
  async list(maxAgeMs: number): Promise<SetsSnapshot> {
    if (maxAgeMs === 0) this.#refresh = true;
    const since = this.#now() - maxAgeMs * Math.max(1, Math.ceil(this.#listed.size / PAGE));
    const kept = (): SetsSnapshot | undefined =>
      this.#cached !== undefined && this.#cached.at >= since ? this.#cached : undefined;
    // A look that is under way may have begun too early, or have met an outage that is over.
    if (kept() === undefined) await this.#lists.run().catch(() => undefined);
    return kept() ?? (await this.#lists.run());
  }

  async #look(): Promise<SetsSnapshot> {
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

  /** A set that continues as new may be missing for a moment, between the end of one run and the begin of the next in visibility: its jobs are not another's for that. */
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
