/** Brings an event of a job to those it concerns: the set that has to serve the job, and the runner that runs it. */
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { SEARCH_ATTRIBUTES, ciEventSignal, demandSignal, setWorkflowId, type CiEvent, type JobEvent } from '../../core/contract/index.ts';
import { DemandBatches } from './batches.ts';
import { chooseSet } from '../../core/domain/jobRouting.ts';
import type { DemandSets, SetsNow } from './coveringSets.ts';
import { runnersNamed } from '../visibility.ts';
import type { JobNews } from './webhookDelivery.ts';

export interface DemandOptions {
  /** The client of now. @throws Error while there is no connection to Temporal */
  readonly client: () => Client;
  /** Runners and sets of this task queue are ours. */
  readonly taskQueue: string;
  readonly sets: DemandSets;
}

/** Who has the event now. */
export interface Told {
  /** Workflow ids of sets. */
  readonly sets: readonly string[];
  /** Workflow ids of runners. */
  readonly runners: readonly string[];
  /** Name of the set whose runner runs the job, or ran it. */
  readonly runBy: string | undefined;
}

/** Nobody knows yet what a running set covers, and none of the others covers the job: it may be that one's. */
export class SetsUnknownError extends Error {
  override readonly name = 'SetsUnknownError';
}

/** How old the sets may be that an event is matched against. */
const SETS_AGE_MS = 5_000;
/** How old, before it is said that no set covers a job: jobs for other runners are many, and must not cost a look each. */
const UNCOVERED_AGE_MS = 250;
/** One signal; the SDK tries again meanwhile. */
const SIGNAL_DEADLINE_MS = 6_000;
/** A runner's name is used once, or by one static runner, whose earlier runs are listed after the running one. */
const MAX_NAMESAKES = 5;

export class Demand {
  readonly #options: DemandOptions;
  readonly #batches: DemandBatches;

  constructor(options: DemandOptions) {
    this.#options = options;
    this.#batches = new DemandBatches(async (workflowId, events) => {
      const client = options.client();
      await client.withDeadline(Date.now() + SIGNAL_DEADLINE_MS, async () => await client.workflow.getHandle(workflowId).signal(demandSignal, { events }));
    });
  }

  /**
   * Resolves when Temporal has accepted the event for all whom it concerns.
   * @throws SetsUnknownError, what Temporal's client throws, or the reason of `signal`; some may have been told then: they all bear being
   *   told again
   */
  async tell(news: JobNews, signal: AbortSignal): Promise<Told> {
    const { runner } = news;
    const found = runner && (await this.#runnersNamed(runner.name));
    const running = found?.filter((one) => one.running) ?? [];
    const ownSets = found?.flatMap(({ set }) => (set === undefined ? [] : [setWorkflowId(set)])) ?? [];
    const [sets, runners] = await Promise.all([
      this.#tellSets(news, ownSets, signal),
      runner ? this.#tellRunners(running.map(({ workflowId }) => workflowId), runner.event) : [],
    ]);
    return { sets, runners, runBy: found?.find(({ set }) => set !== undefined)?.set };
  }

  /** The set that has to serve the job, and the one whose runner runs it: that one learns that it is busy, or free again. */
  async #tellSets(news: JobNews, ownSets: readonly string[], signal: AbortSignal): Promise<string[]> {
    for (let again = false; ; again = true) {
      const { chosen, now } = await this.#choose(news, again);
      const own = ownSets.filter((id) => now.unknown.includes(id) || now.sets.some(({ workflowId }) => workflowId === id));
      const ids = [...new Set([...(chosen === undefined ? [] : [chosen]), ...own])];
      const told = await Promise.all(ids.map(async (id) => await this.#tellSet(id, news.event, signal)));
      // Ended since it was listed: the job is for whichever set covers it now.
      if (!again && chosen !== undefined && !told[0]) continue;
      return ids.filter((_id, index) => told[index]);
    }
  }

  async #choose({ event, enterprise }: JobNews, afresh: boolean): Promise<{ chosen: string | undefined; now: SetsNow }> {
    let now = await this.#options.sets.list(afresh ? 0 : SETS_AGE_MS);
    let chosen = chooseSet(event, enterprise, now.sets);
    if (chosen === undefined) {
      now = await this.#options.sets.list(UNCOVERED_AGE_MS);
      chosen = chooseSet(event, enterprise, now.sets);
    }
    if (chosen === undefined && now.unknown.length > 0) throw new SetsUnknownError(`no set is known to cover the job, and ${now.unknown.join(', ')} did not say what it covers`);
    return { chosen: chosen?.workflowId, now };
  }

  /** @returns false when the set has ended */
  async #tellSet(workflowId: string, event: JobEvent, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#batches.add(workflowId, event, signal);
      return true;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  }

  async #runnersNamed(name: string): Promise<{ workflowId: string; running: boolean; set: string | undefined }[]> {
    const found = new Map<string, { workflowId: string; running: boolean; set: string | undefined }>();
    let seen = 0;
    for await (const { workflowId, status, typedSearchAttributes } of this.#options.client().workflow.list({ query: runnersNamed(this.#options.taskQueue, name), pageSize: MAX_NAMESAKES })) {
      const running = status.name === 'RUNNING';
      if (running || !found.has(workflowId)) found.set(workflowId, { workflowId, running, set: typedSearchAttributes.get(SEARCH_ATTRIBUTES.set) });
      if (++seen === MAX_NAMESAKES) break;
    }
    return [...found.values()];
  }

  async #tellRunners(workflowIds: readonly string[], event: CiEvent): Promise<string[]> {
    const { workflow } = this.#options.client();
    const told = await Promise.all(
      workflowIds.map(async (workflowId) => {
        try {
          await workflow.getHandle(workflowId).signal(ciEventSignal, event);
          return true;
        } catch (error) {
          if (error instanceof WorkflowNotFoundError) return false; // it has ended meanwhile: nobody to tell
          throw error;
        }
      }),
    );
    return workflowIds.filter((_id, index) => told[index]);
  }
}
