import { waitActivityId, type PodCondition } from '../../core/domain/podConditions.ts';
import type { WaitCompleter } from '../ports/waitCompleter.ts';
import type { RetryQueue } from './retryQueue.ts';
import type { PodView } from '../../core/domain/pod.ts';

/** Options of {@link WaitCompletions}. */
export interface CompletionsOptions {
  readonly completer: WaitCompleter;
  /** Times to wait before each further attempt to complete a wait that was not pending (ms). */
  readonly againMs: readonly number[];
  /** Time that a slower watcher gives the others before its own attempt (ms). */
  readonly othersFirstMs: number;
  /** Called after each attempt with whether the wait was pending. */
  readonly offered: (completed: boolean, pod: PodView) => Promise<void>;
}

/**
 * Ended runners in a row whose wait was no longer pending, after which another watcher counts as
 * faster. A single one is usually completed by the check of the wait itself.
 */
const OVERTAKEN = 3;

/**
 * Completes waits that hold no task slot. A completion that came before its wait is repeated.
 * Usually the wait has found the state by its own check by then. A check that was lost, for example
 * with its worker, would otherwise repeat only at the re-sync.
 *
 * If several watchers run, one is enough. A watcher whose completions of ended runners find no
 * pending wait lets the others go first and tries later, twice, in case the wait began meanwhile
 * and the faster watcher is gone. Its first successful completion shows that the others are gone or
 * slower, and it goes first again.
 */
export class WaitCompletions {
  readonly #queue: RetryQueue;
  readonly #options: CompletionsOptions;
  readonly #later = new Set<NodeJS.Timeout>();
  /** Ended runners in a row whose wait was not pending. */
  #late = 0;

  constructor(queue: RetryQueue, options: CompletionsOptions) {
    this.#queue = queue;
    this.#options = options;
  }

  /** Completes the wait for a condition that holds, if it is pending. */
  offer(condition: PodCondition, pod: PodView): void {
    const { againMs, othersFirstMs } = this.#options;
    if (this.#late >= OVERTAKEN)
      return this.#in(othersFirstMs, () => void this.#offer(condition, pod, againMs.slice(-1)));
    void this.#offer(condition, pod, againMs).then((completed) => {
      // Every runner has a wait for its end, unlike for the other conditions.
      if (condition === 'ended' && !completed) this.#late += 1;
    });
  }

  /** Cancels the attempts that have not started yet. */
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
