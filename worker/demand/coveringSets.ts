/** The running sets, as the webhook and the metrics need them: from visibility, remembered for a few seconds. */
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { z } from 'zod';
import { inTurns } from '../../activities/inTurns.ts';
import { SET_COVER_MEMO, setStatusQuery, type RunnerSetStatus, type SetCover } from '../../core/contract/index.ts';
import type { CoveringSet } from '../../core/domain/jobRouting.ts';
import { runningSets } from '../visibility.ts';

export interface DemandSetsOptions {
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

/** More sets than this are not looked at. */
const MAX_SETS = 1_000;
/** A set without a worker must not hold up the others' events. */
const QUERY_DEADLINE_MS = 2_000;
const QUERIES_AT_ONCE = 20;
/** Whoever comes meanwhile waits for the same look: one that hangs must not keep them all. */
const LIST_DEADLINE_MS = 3_000;

const coverMemo = z.object({
  labels: z.array(z.string()),
  scope: z.string(),
  scopeKind: z.enum(['organization', 'repository', 'enterprise']),
});

export class DemandSets {
  readonly #options: DemandSetsOptions;
  readonly #now: () => number;
  /** What the sets last said, by workflow id: of one that does not answer now, better than nothing. */
  #answers = new Map<string, { cover: SetCover; at: number }>();
  #kept: { value: SetsNow; at: number } | undefined;
  #flight: Promise<void> | undefined;
  #warned = new Set<string>();

  constructor(options: DemandSetsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * The sets as they were at most `maxAgeMs` ago.
   * @throws what Temporal's client throws when the sets cannot be listed
   */
  async list(maxAgeMs: number): Promise<SetsNow> {
    const since = this.#now() - maxAgeMs;
    for (let patience = 1; ; ) {
      if (this.#kept && this.#kept.at >= since) return this.#kept.value;
      const joined = this.#flight;
      if (joined === undefined) {
        this.#flight = this.#look(maxAgeMs).finally(() => (this.#flight = undefined));
        await this.#flight;
        continue;
      }
      // One that was under way already may have looked too early, or into an outage that is over.
      await joined.catch((error: unknown) => {
        if (patience-- === 0) throw error;
      });
    }
  }

  /** Status of a set; the query needs a worker. */
  async status(workflowId: string): Promise<RunnerSetStatus> {
    const client = this.#options.client();
    return await client.withDeadline(Date.now() + QUERY_DEADLINE_MS, async () => await client.workflow.getHandle(workflowId).query(setStatusQuery));
  }

  async #look(maxAgeMs: number): Promise<void> {
    const at = this.#now();
    const running: { workflowId: string; memo: SetCover | undefined }[] = [];
    const client = this.#options.client();
    await client.withDeadline(Date.now() + LIST_DEADLINE_MS, async () => {
      for await (const { workflowId, memo } of client.workflow.list({ query: runningSets(this.#options.taskQueue) })) {
        running.push({ workflowId, memo: coverMemo.safeParse(memo?.[SET_COVER_MEMO]).data });
        if (running.length === MAX_SETS) break;
      }
    });
    const answers = new Map<string, { cover: SetCover; at: number }>();
    await inTurns(QUERIES_AT_ONCE, running, async (set) => {
      const known = this.#answers.get(set.workflowId);
      const answer = set.memo ? { cover: set.memo, at } : known && at - known.at <= maxAgeMs ? known : ((await this.#ask(set.workflowId, at)) ?? known);
      if (answer) answers.set(set.workflowId, answer);
    });
    this.#answers = answers;
    const value: SetsNow = {
      sets: [...answers].map(([workflowId, { cover }]) => ({ workflowId, cover })),
      unknown: running.map(({ workflowId }) => workflowId).filter((workflowId) => !answers.has(workflowId)),
    };
    this.#kept = { value, at };
  }

  async #ask(workflowId: string, at: number): Promise<{ cover: SetCover; at: number } | undefined> {
    try {
      const { labels, scope, scopeKind } = await this.status(workflowId);
      this.#warned.delete(workflowId);
      return { cover: { labels, scope, scopeKind: scopeKind ?? (scope.includes('/') ? 'repository' : 'organization') }, at };
    } catch (error) {
      if (!this.#warned.has(workflowId)) this.#options.logger.warn({ err: error, workflowId }, 'a runner set does not answer its status query');
      this.#warned.add(workflowId);
      return undefined;
    }
  }
}
