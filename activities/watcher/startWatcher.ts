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
import type { DeferredCompletion, DeferredCompletions } from './deferredCompletions.ts';
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
  const { compute, completer, deferredCompletions } = options;
  const changes = new PodChanges(options);
  const { queue } = changes;
  deferredCompletions?.open(
    (deferred) =>
      void queue.add(`answer that waited for ${deferred.podName}`, async () => {
        await completeDeferred(options, deferred);
      }),
  );
  const watch = await compute.watch({
    changed: (seen, previous) => changes.onChanged(seen, previous),
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
    jobEventDelivered: (workflowId) => changes.states.dropDelayedBusy(workflowId),
    async stop() {
      await watch.stop();
      deferredCompletions?.close();
      changes.stop();
      await queue.stop();
    },
  };
}

async function completeDeferred(
  { completer, logger }: WatcherOptions,
  { activity, podName, result }: DeferredCompletion,
): Promise<void> {
  if (await completer.completeDeferred(activity, result)) return;
  logger.warn(
    { pod: podName },
    'a deferred completion found no waiting activity: it had timed out, and is retried',
  );
}

/** Completes the waits whose conditions a change of a pod meets, and notifies runners of states. */
class PodChanges {
  readonly queue: RetryQueue;
  readonly states: PodStateNotifier;
  readonly #completions: WaitCompletions;
  readonly #timers = new PodTimers();
  readonly #deferred: DeferredCompletions | undefined;
  readonly #tearDownMs: number;
  /**
   * Times at which workflows were notified of the end of a completed pod (ms since the epoch), by
   * UID.
   */
  readonly #notifiedEnds = new LRUCache<string, number>({ max: MAX_TOLD_ENDS });

  constructor(options: WatcherOptions) {
    const { compute, completer, logger, deferredCompletions, concurrency = 64 } = options;
    const { againMs = [5_000, 30_000], othersFirstMs = 5_000 } = options;
    this.queue = new RetryQueue(concurrency, (error, what) =>
      logger.warn({ err: error }, `${what} failed; the re-sync of the wait will find the state`),
    );
    const { tearDownMs = 0, busyMs = 0 } = deferredCompletions?.limits ?? {};
    this.#deferred = deferredCompletions;
    this.#tearDownMs = tearDownMs;
    this.states = new PodStateNotifier(this.queue, completer, busyMs);
    this.#completions = new WaitCompletions(this.queue, {
      completer,
      againMs,
      othersFirstMs,
      offered: async (completed, pod) => {
        options.onCompletion?.(completed);
        if (!completed) return;
        if (isCompletedEphemeral(pod)) this.#notifiedEnds.set(pod.uid, Date.now());
        await deleteCompletedPod(compute, logger, pod);
      },
    });
  }

  onChanged(seen: PodView, previous: PodView | undefined): void {
    const nowMs = Date.now();
    // The end must include the state that was not sent yet.
    const pod: PodView =
      seen.ended && this.states.forget(seen) ? { ...seen, endedBusy: true } : seen;
    for (const condition of POD_CONDITIONS) {
      // Checked first: a deferred completion replaces that of the wait.
      const answered = this.#deferred?.changed(pod, condition) === true;
      if (
        !answered &&
        isTransition(condition, pod, previous, nowMs) &&
        !this.#isTooSoon(condition, pod, nowMs)
      )
        this.#completions.offer(condition, pod);
    }
    this.#timers.set(pod, nowMs, () => this.#onTimer(pod, nowMs));
    if (!pod.ended) this.#notifyState(pod, podStateChange(pod, previous, nowMs));
  }

  #onTimer(pod: PodView, seenMs: number): void {
    const nowMs = Date.now();
    for (const condition of POD_CONDITIONS)
      if (conditionMet(condition, pod, nowMs) && !conditionMet(condition, pod, seenMs))
        this.#completions.offer(condition, pod);
    this.#notifyState(pod, podStateChange(pod, pod, nowMs));
  }

  /**
   * Whether the workflow does not wait for the deletion yet. The tear-down takes this long before
   * it does, and that wait checks the live state itself.
   */
  #isTooSoon(condition: PodCondition, { uid }: PodView, nowMs: number): boolean {
    return condition === 'deleted' && nowMs - (this.#notifiedEnds.get(uid) ?? 0) < this.#tearDownMs;
  }

  #notifyState(pod: PodView, state: 'busy' | 'idle' | undefined): void {
    if (state !== undefined) this.states.notify(pod, state);
  }

  /** Stops everything except the queue. */
  stop(): void {
    this.#timers.stop();
    this.#completions.stop();
    this.states.stop();
  }
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
