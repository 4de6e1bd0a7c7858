/**
 * An optimization, contained in this file.
 *
 * An activity that has done its work defers its completion for a moment, until the state that its
 * workflow would wait for next: a new pod is online, or a deleted one is gone. It saves the
 * workflow a workflow task and a separate wait.
 *
 * The workflow is correct without it. Only this process knows the deferred completions. If the
 * process ends, the heartbeat timeout starts the next attempt, which reads the live state. After a
 * completion that is early or without the state, the workflow waits as usual. A cancellation takes
 * effect after the completion.
 */
import { CompleteAsyncError, activityInfo, type Info } from '@temporalio/activity';
import { conditionMet, type PodCondition } from '../../core/domain/podConditions.ts';
import type { PodRef, PodView } from '../../core/domain/pod.ts';

/** A task of an activity that completes later. */
export interface ActivityTask {
  readonly taskToken: Uint8Array;
  readonly activityId: string;
  readonly workflowId: string;
}

/** A deferred result of an activity. */
export interface DeferredCompletion {
  readonly activity: ActivityTask;
  readonly podName: string;
  readonly result: unknown;
}

/** A waiter for a pod condition. It receives every change from its creation on. */
export interface PodWaiter {
  readonly pod: PodRef;
  readonly until: PodCondition;
  /** Latest state of the pod since then. */
  seen?: PodView;
  /** Set while the completion of the activity is deferred. */
  held?: { readonly timer: NodeJS.Timeout; readonly give: (seen: PodView | undefined) => void };
}

/** Maximum times to defer notifications of workflows (ms). */
export interface DeferralLimits {
  /** Completion of a provisioning, until the pod is online. Covers a start-up of ten seconds. */
  readonly provisioningMs: number;
  /**
   * Completion of a tear-down, until the pod is gone. A kubelet needs up to three seconds for a pod
   * whose containers have ended. Queries and updates of the workflow wait meanwhile.
   */
  readonly tearDownMs: number;
  /**
   * Notification that a single-use runner is busy. The event of the CI server about the same job
   * arrives earlier, and replaces it.
   */
  readonly busyMs: number;
}

/** Limits of a worker. Tests shorten them. */
export const DEFERRAL_LIMITS: DeferralLimits = {
  provisioningMs: 12_000,
  tearDownMs: 4_000,
  busyMs: 15_000,
};

/**
 * Time before the heartbeat timeout at which an activity completes at the latest (ms). A deferred
 * activity sends no heartbeats.
 */
const HEARTBEAT_MARGIN_MS = 3_000;

/**
 * The activities of this process whose completion waits for a pod condition. The watcher reports
 * pod changes to it and sends the completions.
 */
export class DeferredCompletions {
  readonly limits: DeferralLimits;
  readonly #lookOuts = new Map<string, PodWaiter>();
  #answer: ((answer: DeferredCompletion) => void) | undefined;

  /** @param limits - default: {@link DEFERRAL_LIMITS} */
  constructor(limits: DeferralLimits = DEFERRAL_LIMITS) {
    this.limits = limits;
  }

  /** Starts to defer completions, with the function that sends them. */
  open(answer: (answer: DeferredCompletion) => void): void {
    this.#answer = answer;
  }

  /** Sends all deferred completions with the state known so far, and defers no further ones. */
  close(): void {
    for (const lookOut of this.#lookOuts.values()) this.#settle(lookOut);
    this.#answer = undefined;
  }

  /** Adds a waiter, which receives every change of the pod from now on. */
  addWaiter(pod: PodRef, until: PodCondition): PodWaiter {
    const lookOut: PodWaiter = { pod, until };
    this.#lookOuts.set(keyOf(until, pod), lookOut);
    return lookOut;
  }

  /**
   * Defers the completion until the condition is met or the time has passed.
   * @returns `false` if the completion cannot or need not be deferred
   */
  defer(
    lookOut: PodWaiter,
    activity: ActivityTask,
    resultOf: (pod: PodView | undefined) => unknown,
    withinMs: number,
  ): boolean {
    return this.#hold(
      lookOut,
      (seen) => this.#answer?.({ activity, podName: lookOut.pod.name, result: resultOf(seen) }),
      withinMs,
    );
  }

  /**
   * Waits until the condition is met or the time has passed.
   * @returns the latest state of the pod
   */
  async until(lookOut: PodWaiter, withinMs: number): Promise<PodView | undefined> {
    return await new Promise((resolve) => {
      if (!this.#hold(lookOut, resolve, withinMs)) resolve(lookOut.seen);
    });
  }

  #hold(lookOut: PodWaiter, give: (seen: PodView | undefined) => void, withinMs: number): boolean {
    if (this.#answer === undefined || withinMs <= 0 || conditionSeen(lookOut)) {
      this.forget(lookOut);
      return false;
    }
    this.#lookOuts.set(keyOf(lookOut.until, lookOut.pod), lookOut);
    lookOut.held = { give, timer: setTimeout(() => this.#settle(lookOut), withinMs) };
    return true;
  }

  /**
   * Reports a change of a pod.
   * @returns whether it caused a deferred completion for this condition
   */
  changed(pod: PodView, until: PodCondition): boolean {
    const lookOut = this.#lookOuts.get(keyOf(until, pod));
    if (lookOut === undefined || lookOut.pod.uid !== pod.uid) return false;
    lookOut.seen = pod;
    return conditionSeen(lookOut) && this.#settle(lookOut);
  }

  #settle(lookOut: PodWaiter): boolean {
    this.forget(lookOut);
    const { held, seen } = lookOut;
    if (held === undefined) return false;
    clearTimeout(held.timer);
    held.give(seen);
    return true;
  }

  /** Removes the waiter. */
  forget(lookOut: PodWaiter): void {
    const key = keyOf(lookOut.until, lookOut.pod);
    if (this.#lookOuts.get(key) === lookOut) this.#lookOuts.delete(key);
  }
}

function keyOf(until: PodCondition, { name }: { readonly name: string }): string {
  return `${until}/${name}`;
}

function conditionSeen({ seen, until }: PodWaiter): boolean {
  return seen !== undefined && conditionMet(until, seen, Date.now());
}

/**
 * Returns the result of an activity, or defers its completion. It is the last step of the activity.
 * A local activity keeps its slot meanwhile; other activities release it.
 * @param lookOut - absent if changes of the pod are not observed
 * @param withinMs - maximum time to defer (ms)
 * @throws CompleteAsyncError if the activity completes later
 */
export async function completeOrDefer<T>(
  deferredCompletions: DeferredCompletions | undefined,
  lookOut: PodWaiter | undefined,
  resultOf: (pod: PodView | undefined) => T,
  withinMs: number,
): Promise<T> {
  if (deferredCompletions === undefined || lookOut === undefined) return resultOf(lookOut?.seen);
  const { taskToken, activityId, workflowExecution, isLocal } = activityInfo();
  const delayMs = permittedDelayMs(activityInfo(), withinMs, Date.now());
  if (isLocal) return resultOf(await deferredCompletions.until(lookOut, delayMs));
  const activity = { taskToken, activityId, workflowId: workflowExecution?.workflowId ?? '' };
  if (deferredCompletions.defer(lookOut, activity, resultOf, delayMs))
    throw new CompleteAsyncError();
  return resultOf(lookOut.seen);
}

/**
 * Returns how long an activity may defer its completion (ms): the deferral alone must not make it
 * miss a deadline.
 */
export function permittedDelayMs(
  {
    scheduledTimestampMs,
    scheduleToCloseTimeoutMs,
    currentAttemptScheduledTimestampMs,
    heartbeatTimeoutMs = 0,
  }: Pick<
    Info,
    | 'scheduledTimestampMs'
    | 'scheduleToCloseTimeoutMs'
    | 'currentAttemptScheduledTimestampMs'
    | 'heartbeatTimeoutMs'
  >,
  wantedMs: number,
  nowMs: number,
): number {
  const leftMs =
    scheduleToCloseTimeoutMs > 0
      ? scheduledTimestampMs + scheduleToCloseTimeoutMs - nowMs
      : Number.POSITIVE_INFINITY;
  if (wantedMs >= leftMs / 2) return 0;
  if (heartbeatTimeoutMs <= 0) return wantedMs;
  const untilHeartbeatMs = currentAttemptScheduledTimestampMs + heartbeatTimeoutMs - nowMs;
  return Math.max(0, Math.min(wantedMs, untilHeartbeatMs - HEARTBEAT_MARGIN_MS));
}
