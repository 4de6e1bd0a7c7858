import { waitActivityId, type PodCondition } from '../../core/domain/podConditions.ts';
import type { WaitCompleter } from '../ports.ts';
import type { TaskQueue } from '../taskQueue.ts';
import type { PodView } from '../../core/domain/pod.ts';

export interface CompletionsOptions {
  readonly completer: WaitCompleter;
  /** When to offer an answer again for which nobody waited, in ms after one another. */
  readonly againMs: readonly number[];
  /** Told of each offer: whether somebody had waited for it. */
  readonly offered: (completed: boolean, pod: PodView) => Promise<void>;
}

/**
 * Offers pods as the answers of waits that gave their slot back. An answer that came before its wait is offered again: mostly the wait's
 * own look has found it by then, but a look that was lost on its way to the worker (a server that is short of breath, a worker that died
 * with it in its hands) would come again only at the re-sync.
 */
export class Completions {
  readonly #queue: TaskQueue;
  readonly #options: CompletionsOptions;
  readonly #unclaimed = new Set<NodeJS.Timeout>();

  constructor(queue: TaskQueue, options: CompletionsOptions) {
    this.#queue = queue;
    this.#options = options;
  }

  offer(condition: PodCondition, pod: PodView): void {
    this.#offer(waitActivityId(condition, pod.name), pod, this.#options.againMs);
  }

  stop(): void {
    for (const timer of this.#unclaimed) clearTimeout(timer);
  }

  #offer(activityId: string, pod: PodView, [afterMs, ...later]: readonly number[]): void {
    const { completer, offered } = this.#options;
    void this.#queue.add(`completion of ${activityId}`, async () => {
      const completed = await completer.complete(pod.workflowId, activityId, pod);
      await offered(completed, pod);
      if (completed || afterMs === undefined) return;
      const timer = setTimeout(() => {
        this.#unclaimed.delete(timer);
        this.#offer(activityId, pod, later);
      }, afterMs);
      this.#unclaimed.add(timer);
    });
  }
}
