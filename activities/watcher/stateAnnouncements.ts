import { isBusy } from '../../core/domain/podConditions.ts';
import type { WaitCompleter } from '../ports.ts';
import type { TaskQueue } from '../taskQueue.ts';
import type { PodView } from '../../core/domain/pod.ts';

/** Tells runners' workflows when their runner has become busy or idle; for each pod one after the other, lest busy overtake the idle that follows it. */
export class StateAnnouncements {
  readonly #queue: TaskQueue;
  readonly #completer: WaitCompleter;
  /** The last announcement under way, by pod. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(queue: TaskQueue, completer: WaitCompleter) {
    this.#queue = queue;
    this.#completer = completer;
  }

  tell({ name, uid, workflowId, readinessChangedAt }: PodView, state: 'busy' | 'idle'): void {
    const before = this.#last.get(name);
    const told = this.#queue.add(`podState of ${name}`, async () => {
      await before;
      // Every watcher sees the same time.
      await this.#completer.signalPodState(workflowId, { uid, state }, readinessChangedAt && `${uid}/${state}/${readinessChangedAt}`);
    });
    this.#last.set(name, told);
    void told.then(() => {
      if (this.#last.get(name) === told) this.#last.delete(name);
    });
  }
}

/**
 * The state of a pod, where it is news. A runner is idle when it comes online: its wait says so. Idle is news only after busy, which may
 * have been before this watcher was.
 * @param previous - as it was seen before; `undefined`: never
 * @returns `undefined`: no news
 */
export function stateNews(pod: PodView, previous: PodView | undefined, nowMs: number): 'busy' | 'idle' | undefined {
  const busy = isBusy(pod, nowMs);
  if (busy === undefined || pod.online !== true || pod.ended || (busy === previous?.busy && previous.online === true)) return undefined;
  if (busy) return 'busy';
  const wasBusy = previous === undefined ? pod.reusable === true : previous.online === true && isBusy(previous, nowMs) === true;
  return wasBusy ? 'idle' : undefined;
}
