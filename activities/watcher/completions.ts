import { waitActivityId, type PodCondition } from '../../core/domain/podConditions.ts';
import type { WaitCompleter } from '../ports.ts';
import type { RetryQueue } from './retryQueue.ts';
import type { PodView } from '../../core/domain/pod.ts';

export interface CompletionsOptions {
  readonly completer: WaitCompleter;
  /** When to offer an answer again for which nobody waited, in ms after one another. */
  readonly againMs: readonly number[];
  /** How long another watcher that is quicker has for its offer, in ms. */
  readonly othersFirstMs: number;
  /** Told of each offer: whether somebody had waited for it. */
  readonly offered: (completed: boolean, pod: PodView) => Promise<void>;
}

/** So many ends in a row that were not waited for any more: another watcher is quicker. One by itself is mostly the wait's own look. */
const OVERTAKEN = 3;

/**
 * Offers pods as the answers of waits that gave their slot back. An answer that came before its wait is offered again: mostly the wait's
 * own look has found it by then, but a look that was lost on its way to the worker (a server that is short of breath, a worker that died
 * with it in its hands) would come again only at the re-sync.
 *
 * Where several watch, one is enough, and which one shows by itself: whose offers of an end find nobody waiting lets the others go first, and
 * offers once, later. The first offer of its own that is taken shows that they are gone, or behind: it goes first again.
 */
export class WaitCompletions {
  readonly #queue: RetryQueue;
  readonly #options: CompletionsOptions;
  readonly #later = new Set<NodeJS.Timeout>();
  /** Ends in a row that nobody waited for when they were offered. */
  #late = 0;

  constructor(queue: RetryQueue, options: CompletionsOptions) {
    this.#queue = queue;
    this.#options = options;
  }

  offer(condition: PodCondition, pod: PodView): void {
    if (this.#late >= OVERTAKEN)
      return this.#in(this.#options.othersFirstMs, () => void this.#offer(condition, pod, []));
    void this.#offer(condition, pod, this.#options.againMs).then((completed) => {
      // Every runner's end is waited for, unlike the other conditions.
      if (condition === 'ended' && !completed) this.#late += 1;
    });
  }

  stop(): void {
    for (const timer of this.#later) clearTimeout(timer);
  }

  async #offer(
    condition: PodCondition,
    pod: PodView,
    [afterMs, ...againMs]: readonly number[],
  ): Promise<boolean> {
    const { completer, offered } = this.#options;
    const activityId = waitActivityId(condition, pod.name);
    let completed = false;
    await this.#queue.add(`completion of ${activityId}`, async () => {
      completed = await completer.complete(pod.workflowId, activityId, pod);
      if (completed) this.#late = 0;
      await offered(completed, pod);
      if (!completed && afterMs !== undefined)
        this.#in(afterMs, () => void this.#offer(condition, pod, againMs));
    });
    return completed;
  }

  #in(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#later.delete(timer);
      run();
    }, ms);
    this.#later.add(timer);
  }
}
