/**
 * The watcher completes waits that hold no task slot when the state of a pod changes. It has no
 * state of its own: any watcher can complete the wait of any worker, so several may run. Waits do
 * not depend on it, because each checks the live state at intervals.
 */
import { LRUCache } from 'lru-cache';
import {
  POD_CONDITIONS,
  conditionMet,
  isCompletedEphemeral,
  type PodCondition,
} from '../../core/domain/podConditions.ts';
import { deleteCompletedPod } from '../runner/deleteCompletedPod.ts';
import type { DeferredCompletions } from './deferredCompletions.ts';
import type { Compute } from '../ports/compute.ts';
import type { Logger } from '../ports/logger.ts';
import type { WaitCompleter } from '../ports/waitCompleter.ts';
import { RetryQueue } from './retryQueue.ts';
import { WaitCompletions } from './completions.ts';
import { PodTimers } from './podTimers.ts';
import { PodStateNotifier, podStateChange } from './podStateNotifier.ts';
import { recheckMissingPods } from './recheckMissingPods.ts';
import type { PodView } from '../../core/domain/pod.ts';

/** Options of {@link startWatcher}. */
export interface WatcherOptions {
  readonly compute: Compute;
  readonly completer: WaitCompleter;
  readonly logger: Logger;
  /** Activities of this process whose completion is deferred. */
  readonly deferredCompletions?: DeferredCompletions;
  /**
   * Maximum concurrent completions.
   * @default 64
   */
  readonly concurrency?: number;
  /**
   * Times to wait before each further attempt to complete a wait that was not pending (ms).
   * @default 5000, 30000
   */
  readonly againMs?: readonly number[];
  /**
   * Time that a slower watcher gives the others before its own attempt (ms); see {@link
   * WaitCompletions}.
   * @default 5000
   */
  readonly othersFirstMs?: number;
  /** Called for every completion, for metrics. `false` means that the wait was not pending. */
  readonly onCompletion?: (completed: boolean) => void;
}

/** The running watcher of a process. Stop it at the end. */
export interface Watcher {
  stop(): Promise<void>;
  /** Returns whether the shared watch is up to date. */
  synced(): boolean;
  /** Resolves when all changes seen so far have been processed. */
  idle(): Promise<void>;
  /** Drops the delayed notification that this runner is busy: its workflow has the job's event. */
  jobEventDelivered(workflowId: string): void;
}

/**
 * Maximum time since the start of a pod for which a new watcher still reports it as online (ms).
 * After that, the wait has checked the live state itself.
 */
const ANNOUNCE_ONLINE_MS = 15 * 60_000;

/** Maximum number of ended pods remembered, enough for those of two seconds. */
const MAX_TOLD_ENDS = 1_000;

/** Starts the single watcher of this process. */
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
    logger.warn({ err: error }, `${what} failed; the re-sync of the wait will find the state`),
  );
  const timers = new PodTimers();
  /**
   * Times at which workflows were notified of the end of a completed pod (ms since the epoch), by
   * UID.
   */
  const notifiedEnds = new LRUCache<string, number>({ max: MAX_TOLD_ENDS });
  const { tearDownMs = 0, busyMs = 0 } = deferredCompletions?.limits ?? {};
  const states = new PodStateNotifier(queue, completer, busyMs);
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
  // The tear-down takes this long before the workflow waits for the deletion, and that wait checks
  // the live state itself.
  const isTooSoon = (condition: PodCondition, { uid }: PodView, nowMs: number): boolean =>
    condition === 'deleted' && nowMs - (notifiedEnds.get(uid) ?? 0) < tearDownMs;

  const tellState = (pod: PodView, state: 'busy' | 'idle' | undefined): void => {
    if (state !== undefined) states.notify(pod, state);
  };
  const onTimer = (pod: PodView, seenMs: number): void => {
    const nowMs = Date.now();
    for (const condition of POD_CONDITIONS)
      if (conditionMet(condition, pod, nowMs) && !conditionMet(condition, pod, seenMs))
        completions.offer(condition, pod);
    tellState(pod, podStateChange(pod, pod, nowMs));
  };

  deferredCompletions?.open(({ activity, podName, result }) => {
    void queue.add(`answer that waited for ${podName}`, async () => {
      if (!(await completer.completeDeferred(activity, result)))
        logger.warn(
          { pod: podName },
          'a deferred completion found no waiting activity: it had timed out, and is retried',
        );
    });
  });

  const watch = await compute.watch({
    changed(seen, previous) {
      const nowMs = Date.now();
      // The end must include the state that was not sent yet.
      const pod: PodView = seen.ended && states.forget(seen) ? { ...seen, endedBusy: true } : seen;
      for (const condition of POD_CONDITIONS) {
        // Checked first: a deferred completion replaces that of the wait.
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
    jobEventDelivered: (workflowId) => states.dropDelayedBusy(workflowId),
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

/** Returns whether this change made the condition true. */
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
