/**
 * The watcher: completes the waits that gave their slot back, when the world moves. Stateless (any watcher can complete any worker's
 * wait, "not found" means that nobody waits), so several may run; and never the only source, because every wait looks live again.
 */
import { LRUCache } from 'lru-cache';
import {
  POD_CONDITIONS,
  conditionMet,
  isCompletedEphemeral,
  type PodCondition,
} from '../../core/domain/podConditions.ts';
import { deleteCompletedPod } from '../runner/deleteCompletedPod.ts';
import { MAX_LOCAL_DEFER_MS, type DeferredCompletions } from './deferredCompletions.ts';
import type { Compute, Logger, WaitCompleter } from '../ports.ts';
import { RetryQueue } from './retryQueue.ts';
import { WaitCompletions } from './completions.ts';
import { PodTimers } from './podTimers.ts';
import { PodStateNotifier, podStateChange } from './podStateNotifier.ts';
import { recheckMissingPods } from './recheckMissingPods.ts';
import type { PodView } from '../../core/domain/pod.ts';

export interface WatcherOptions {
  readonly compute: Compute;
  readonly completer: WaitCompleter;
  readonly logger: Logger;
  /** Activities of this process that hold their answer back. */
  readonly deferredCompletions?: DeferredCompletions;
  /** Completions under way at once. @default 64 */
  readonly concurrency?: number;
  /** When to offer an answer again for which nobody waited, in ms after one another. @default 5 s, 30 s */
  readonly againMs?: readonly number[];
  /** How long another watcher that is quicker has for its offer, in ms; see {@link WaitCompletions}. @default 5000 */
  readonly othersFirstMs?: number;
  /** Told of every completion, for metrics. */
  readonly onCompletion?: (completed: boolean) => void;
}

export interface Watcher {
  stop(): Promise<void>;
  /** The shared watch is up to date. */
  synced(): boolean;
  /** Resolves when all that was seen so far has been handed on. */
  idle(): Promise<void>;
}

/** A pod that has been online for longer than this is not announced again by a new watcher: its wait has looked live itself since. */
const ANNOUNCE_ONLINE_MS = 15 * 60_000;

/** Those that end within two seconds. */
const MAX_TOLD_ENDS = 1_000;

/** Starts the one watcher of this process. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const {
    compute,
    completer,
    logger,
    deferredCompletions,
    concurrency = 64,
    againMs = [5_000, 30_000],
    othersFirstMs = 5_000,
  } = options;
  const queue = new RetryQueue(concurrency, (error, what) =>
    logger.warn({ err: error }, `${what} failed; the wait's own re-sync makes up for it`),
  );
  const timers = new PodTimers();
  /** When workflows were told of the end of a pod whose job is done (ms since the epoch), by its UID. */
  const notifiedEnds = new LRUCache<string, number>({ max: MAX_TOLD_ENDS });
  const tearDownMs = Math.min(deferredCompletions?.longestMs ?? 0, MAX_LOCAL_DEFER_MS);
  const states = new PodStateNotifier(queue, completer, deferredCompletions?.longestMs);
  const completions = new WaitCompletions(queue, {
    completer,
    againMs,
    othersFirstMs,
    async offered(completed, pod) {
      options.onCompletion?.(completed);
      if (!completed) return;
      if (isCompletedEphemeral(pod)) notifiedEnds.set(pod.uid, Date.now());
      await deleteCompletedPod(compute, logger, pod);
    },
  });
  // Its workflow's tear-down takes so long before it waits for the pod to be gone, and that wait looks live itself.
  const isTooSoon = (condition: PodCondition, { uid }: PodView, nowMs: number): boolean =>
    condition === 'deleted' && nowMs - (notifiedEnds.get(uid) ?? 0) < tearDownMs;

  const tellState = (pod: PodView, state: 'busy' | 'idle' | undefined): void => {
    if (state !== undefined) states.tell(pod, state);
  };
  const onTimer = (pod: PodView, seenMs: number): void => {
    const nowMs = Date.now();
    for (const condition of POD_CONDITIONS)
      if (conditionMet(condition, pod, nowMs) && !conditionMet(condition, pod, seenMs))
        completions.offer(condition, pod);
    tellState(pod, podStateChange(pod, pod, nowMs));
  };

  deferredCompletions?.open(({ taskToken, podName, result }) => {
    void queue.add(`answer that waited for ${podName}`, async () => {
      if (!(await completer.completeDeferred(taskToken, result)))
        logger.warn(
          { pod: podName },
          'nobody waited for an answer that was held back: its activity had timed out, and is tried again',
        );
    });
  });

  const watch = await compute.watch({
    changed(seen, previous) {
      const nowMs = Date.now();
      // Its end has to say what was held back.
      const pod: PodView = seen.ended && states.forget(seen) ? { ...seen, endedBusy: true } : seen;
      for (const condition of POD_CONDITIONS) {
        // Told first: an answer that is held back takes the place of the wait's.
        const answered = deferredCompletions?.changed(pod, condition) === true;
        if (
          !answered &&
          isTransition(condition, pod, previous, nowMs) &&
          !isTooSoon(condition, pod, nowMs)
        )
          completions.offer(condition, pod);
      }
      timers.set(pod, nowMs, () => onTimer(pod, nowMs));
      if (!pod.ended) tellState(pod, podStateChange(pod, previous, nowMs));
    },
    relisted(pods) {
      void queue.add(
        'search for waits whose pod vanished',
        async () => await recheckMissingPods(compute, completer, pods.values()),
      );
    },
  });
  return {
    synced: () => watch.synced(),
    idle: async () => await queue.idle(),
    async stop() {
      await watch.stop();
      deferredCompletions?.close();
      timers.stop();
      completions.stop();
      states.stop();
      await queue.stop();
    },
  };
}

/** Has the condition come true with this change? */
function isTransition(
  condition: PodCondition,
  pod: PodView,
  previous: PodView | undefined,
  nowMs: number,
): boolean {
  if (!conditionMet(condition, pod, nowMs)) return false;
  if (previous !== undefined)
    return pod.uid !== previous.uid || !conditionMet(condition, previous, nowMs);
  return (
    condition !== 'online' ||
    pod.ended ||
    pod.startedAt === undefined ||
    nowMs - Date.parse(pod.startedAt) <= ANNOUNCE_ONLINE_MS
  );
}
