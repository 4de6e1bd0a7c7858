import { LRUCache } from 'lru-cache';
import type { PodStateEvent } from '../../core/contract/index.ts';
import { isBusy } from '../../core/domain/podConditions.ts';
import type { WaitCompleter } from '../ports.ts';
import type { RetryQueue } from './retryQueue.ts';
import type { PodView } from '../../core/domain/pod.ts';

type State = PodStateEvent['state'];

/** How much is told of one pod. Each announcement is some seven events of its workflow's history. */
export interface NotificationLimits {
  /** Told at once, where nothing was told for long. Thirty jobs of a static runner. @default 60 */
  readonly burst: number;
  /** After those: one in so long, in ms. @default a minute */
  readonly everyMs: number;
}
const PACE: NotificationLimits = { burst: 60, everyMs: 60_000 };
/** Pods whose pace is kept; one that is forgotten has its burst again. */
const MAX_PODS = 20_000;

/** What was told of one pod, and what is to be. */
interface Announced {
  /** When its last announcement but a burst would be due (ms since the epoch): told at once while that is past. */
  dueMs: number;
  told?: State;
  /** The announcement under way. */
  telling: Promise<void>;
  /** What is told when its turn comes, and since when that is so (ms since the epoch). */
  next?: { pod: PodView; state: State; sinceMs: number; readonly timer: NodeJS.Timeout };
}

/**
 * Tells runners' workflows when their runner has become busy or idle; for each pod one after the other, lest busy overtake the idle that
 * follows it, and at a pace: a probe that flaps every second must not write history for ever.
 *
 * That a runner for one job is busy is held back for a moment, in which a short job is over: its end is all that its workflow has to know, and
 * a signal, a task and a timer are saved. Not where its set waits for the word.
 */
export class PodStateNotifier {
  readonly #queue: RetryQueue;
  readonly #completer: WaitCompleter;
  readonly #pace: NotificationLimits;
  readonly #delayMs: number;
  /** By UID. */
  readonly #pods = new LRUCache<string, Announced>({
    max: MAX_PODS,
    dispose: ({ next }) => clearTimeout(next?.timer),
  });

  /** @param delayMs - for how long the first word of a runner for one job is held back */
  constructor(
    queue: RetryQueue,
    completer: WaitCompleter,
    delayMs = 0,
    pace: NotificationLimits = PACE,
  ) {
    this.#delayMs = delayMs;
    this.#queue = queue;
    this.#completer = completer;
    this.#pace = pace;
  }

  tell(pod: PodView, state: State): void {
    const announced = this.#pods.get(pod.uid) ?? { dueMs: 0, telling: Promise.resolve() };
    this.#pods.set(pod.uid, announced, { noDisposeOnSet: true });
    // Its turn will come: with the state that it has then.
    const nowMs = Date.now();
    const { next: waiting } = announced;
    if (waiting !== undefined)
      return void Object.assign(waiting, {
        pod,
        state,
        sinceMs: state === waiting.state ? waiting.sinceMs : nowMs,
      });
    const { burst, everyMs } = this.#pace;
    const sinceMs = Math.max(announced.dueMs, nowMs - burst * everyMs);
    announced.dueMs = sinceMs + everyMs;
    const waitMs = Math.max(
      announced.dueMs - nowMs,
      state === 'busy' && pod.reusable !== true && pod.notifyBusy !== true ? this.#delayMs : 0,
    );
    if (waitMs <= 0) return this.#announce(pod, announced, state);
    const next = {
      pod,
      state,
      sinceMs: nowMs,
      timer: setTimeout(() => this.#turn(announced, next), waitMs),
    };
    announced.next = next;
  }

  /** Nothing more is to be told of a pod that has ended. @returns whether it was busy, and that is untold */
  forget({ uid }: PodView): boolean {
    const untold = this.#pods.get(uid)?.next?.state === 'busy';
    this.#pods.delete(uid);
    return untold;
  }

  /** That a runner is busy, and was held back, is told first. */
  stop(): void {
    for (const announced of this.#pods.values())
      if (announced.next?.state === 'busy') this.#turn(announced, announced.next);
    this.#pods.clear();
  }

  #turn(announced: Announced, { pod, state, sinceMs }: NonNullable<Announced['next']>): void {
    delete announced.next;
    // A runner is idle before anything is told of it.
    const asBefore = state === (announced.told ?? 'idle');
    // Nothing follows from a job that came and went.
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
    const before = announced.telling;
    announced.told = state;
    announced.telling = this.#queue.add(`podState of ${name}`, async () => {
      await before;
      // Every watcher sees the same time.
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
 * The state of a pod, where it is news. A runner is idle when it comes online: its wait says so. Idle is news only after busy, which may
 * have been before this watcher was.
 * @param previous - as it was seen before; `undefined`: never
 * @returns `undefined`: no news
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
