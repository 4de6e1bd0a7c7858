import { LRUCache } from 'lru-cache';
import type { PodStateEvent } from '../../core/contract/index.ts';
import { isBusy } from '../../core/domain/podConditions.ts';
import type { WaitCompleter } from '../ports/waitCompleter.ts';
import type { RetryQueue } from './retryQueue.ts';
import type { PodView } from '../../core/domain/pod.ts';

type State = PodStateEvent['state'];

/**
 * Limits of notifications about one pod. Each notification adds about seven events to the history
 * of its workflow.
 */
export interface NotificationLimits {
  /**
   * Number of notifications sent immediately after a long silence. It covers thirty jobs of a
   * static runner.
   * @default 60
   */
  readonly burst: number;
  /** Interval between further notifications (ms). @default one minute */
  readonly everyMs: number;
  /**
   * Maximum number of pods whose rate is tracked. A pod that is dropped may use its burst again, and
   * its delayed notification is sent at once.
   * @default 20,000
   */
  readonly maxPods: number;
}
const LIMITS: NotificationLimits = { burst: 60, everyMs: 60_000, maxPods: 20_000 };

/** Notifications about one pod. */
interface Announced {
  /**
   * Due time of the latest notification at the constant rate (ms since the epoch). A silent pod
   * starts a full burst in the past. While the due time is in the past, notifications are sent
   * immediately.
   */
  dueMs: number;
  notified?: State;
  /** Latest notification, which may still be in progress. */
  notifying: Promise<void>;
  /**
   * Notification that waits for its turn, and the time since when the state holds (ms since the
   * epoch).
   */
  next?: { pod: PodView; state: State; sinceMs: number; readonly timer: NodeJS.Timeout };
}

/**
 * Notifies the workflows of runners that their runner has become busy or idle. The notifications
 * about one pod are sent one after the other, so that `busy` cannot overtake a later `idle`. They
 * are rate-limited, because a readiness probe that flaps every second must not add to the history
 * without limit.
 *
 * The `busy` of a single-use runner is delayed. If its job ends within that time, its workflow needs
 * only the end, which saves a signal, a workflow task and a timer. If the CI server's event about
 * the job reaches the workflow first, `busy` is not sent. There is no delay if the set waits for the
 * notification (`notifyBusy`).
 */
export class PodStateNotifier {
  readonly #queue: RetryQueue;
  readonly #completer: WaitCompleter;
  readonly #limits: NotificationLimits;
  readonly #delayMs: number;
  /** Notifications of each pod, by UID. */
  readonly #pods: LRUCache<string, Announced>;
  /** Pods whose `busy` is delayed, by workflow ID. */
  readonly #delayedBusy = new Map<string, Announced>();

  /** @param delayMs - delay of the first `busy` of a single-use runner (ms) */
  constructor(
    queue: RetryQueue,
    completer: WaitCompleter,
    delayMs = 0,
    limits: Partial<NotificationLimits> = {},
  ) {
    this.#delayMs = delayMs;
    this.#queue = queue;
    this.#completer = completer;
    this.#limits = { ...LIMITS, ...limits };
    this.#pods = new LRUCache({
      max: this.#limits.maxPods,
      dispose: (announced, _uid, reason) => {
        clearTimeout(announced.next?.timer);
        if (reason === 'evict' && announced.next) this.#turn(announced, announced.next);
      },
    });
  }

  /** Notifies the workflow of the pod of a new state, now or when the limits permit it. */
  notify(pod: PodView, state: State): void {
    const announced = this.#pods.get(pod.uid) ?? { dueMs: 0, notifying: Promise.resolve() };
    this.#pods.set(pod.uid, announced, { noDisposeOnSet: true });
    // A notification is already waiting. It is sent with the latest state.
    const nowMs = Date.now();
    const { next: waiting } = announced;
    if (waiting !== undefined)
      return void Object.assign(waiting, {
        pod,
        state,
        sinceMs: state === waiting.state ? waiting.sinceMs : nowMs,
      });
    const { burst, everyMs } = this.#limits;
    const sinceMs = Math.max(announced.dueMs, nowMs - burst * everyMs);
    announced.dueMs = sinceMs + everyMs;
    const isDelayed = state === 'busy' && pod.reusable !== true && pod.notifyBusy !== true;
    const waitMs = Math.max(announced.dueMs - nowMs, isDelayed ? this.#delayMs : 0);
    if (waitMs <= 0) return this.#announce(pod, announced, state);
    const next = {
      pod,
      state,
      sinceMs: nowMs,
      timer: setTimeout(() => this.#turn(announced, next), waitMs),
    };
    announced.next = next;
    if (isDelayed) this.#delayedBusy.set(pod.workflowId, announced);
  }

  /** Drops a delayed `busy`, because the workflow has learned of the job from another source. */
  dropDelayedBusy(workflowId: string): void {
    const announced = this.#delayedBusy.get(workflowId);
    this.#delayedBusy.delete(workflowId);
    if (announced?.next?.state !== 'busy') return;
    clearTimeout(announced.next.timer);
    delete announced.next;
    // A later `idle` must be sent.
    announced.notified = 'busy';
  }

  /**
   * Drops the notifications about a pod that has ended.
   * @returns whether the pod was busy and its workflow has not been notified of that
   */
  forget({ uid, workflowId }: PodView): boolean {
    const announced = this.#pods.get(uid);
    const isPending = announced?.next?.state === 'busy';
    // The workflow may have another pod by now.
    if (this.#delayedBusy.get(workflowId) === announced) this.#delayedBusy.delete(workflowId);
    this.#pods.delete(uid);
    return isPending;
  }

  /** Stops the notifier. Delayed notifications of `busy` are sent first. */
  stop(): void {
    for (const announced of this.#pods.values())
      if (announced.next?.state === 'busy') this.#turn(announced, announced.next);
    this.#pods.clear();
    this.#delayedBusy.clear();
  }

  #turn(announced: Announced, { pod, state, sinceMs }: NonNullable<Announced['next']>): void {
    delete announced.next;
    this.#delayedBusy.delete(pod.workflowId);
    // A runner is idle until the first notification.
    const asBefore = state === (announced.notified ?? 'idle');
    // A job that started and ended in the meantime needs no notification.
    if (!asBefore || state === 'busy')
      this.#announce(pod, announced, state, asBefore, Date.now() - sinceMs);
  }

  #announce(
    { name, uid, workflowId, readinessChangedAt }: PodView,
    announced: Announced,
    state: State,
    again = false,
    durationMs = 0,
  ): void {
    const before = announced.notifying;
    announced.notified = state;
    announced.notifying = this.#queue.add(`podState of ${name}`, async () => {
      await before;
      // Every watcher sees the same time, so it makes the request ID unique across watchers.
      await this.#completer.signalPodState(
        workflowId,
        {
          uid,
          state,
          ...(again ? { newJob: true } : {}),
          ...(durationMs > 0 ? { durationMs } : {}),
        },
        readinessChangedAt && `${uid}/${state}/${readinessChangedAt}`,
      );
    });
  }
}

/**
 * Returns the state of a pod if its workflow must be notified of it. A runner is idle when it comes
 * online, which completes its wait, so `idle` is reported only after `busy`. This watcher may not
 * have seen that `busy`.
 * @param previous - state that was seen before; `undefined` if this is the first one
 * @returns `undefined` if there is nothing to notify
 */
export function podStateChange(
  pod: PodView,
  previous: PodView | undefined,
  nowMs: number,
): State | undefined {
  const busy = isBusy(pod, nowMs);
  if (
    busy === undefined ||
    pod.online !== true ||
    pod.ended ||
    (busy === previous?.busy && previous.online === true)
  )
    return undefined;
  if (busy) return 'busy';
  const wasBusy =
    previous === undefined
      ? pod.reusable === true
      : previous.online === true && isBusy(previous, nowMs) === true;
  return wasBusy ? 'idle' : undefined;
}
