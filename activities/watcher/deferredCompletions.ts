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
import { CompleteAsyncError, activityInfo } from '@temporalio/activity';
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

/**
 * Maximum time to defer a completion (ms). Shorter than the heartbeat timeout of these activities
 * (15 s, workflows/shared/activityProxies.ts), which is not reset meanwhile.
 */
const MAX_MS = 5_000;
/**
 * Maximum time to defer a completion in a local activity (ms), during which queries and updates of
 * its workflow wait.
 */
export const MAX_LOCAL_DEFER_MS = 2_000;

/**
 * The activities of this process whose completion waits for a pod condition. The watcher reports
 * pod changes to it and sends the completions.
 */
export class DeferredCompletions {
  readonly longestMs: number;
  readonly #lookOuts = new Map<string, PodWaiter>();
  #answer: ((answer: DeferredCompletion) => void) | undefined;

  /** @param longestMs - maximum time to defer a completion (ms). @default 5000 */
  constructor(longestMs: number = MAX_MS) {
    this.longestMs = longestMs;
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
 * @param completeWithinMs - maximum time to defer (ms), if the workflow has other work
 * @throws CompleteAsyncError if the activity completes later
 */
export async function completeOrDefer<T>(
  deferredCompletions: DeferredCompletions | undefined,
  lookOut: PodWaiter | undefined,
  resultOf: (pod: PodView | undefined) => T,
  completeWithinMs = Number.POSITIVE_INFINITY,
): Promise<T> {
  if (deferredCompletions === undefined || lookOut === undefined) return resultOf(lookOut?.seen);
  const info = activityInfo();
  const { taskToken, activityId, workflowExecution } = info;
  const { scheduledTimestampMs, scheduleToCloseTimeoutMs, isLocal } = info;
  const leftMs =
    scheduleToCloseTimeoutMs > 0
      ? scheduledTimestampMs + scheduleToCloseTimeoutMs - Date.now()
      : Number.POSITIVE_INFINITY;
  // The deferral alone must not make the activity miss its deadline.
  const wantedMs = Math.min(deferredCompletions.longestMs, completeWithinMs);
  const delayMs = wantedMs < leftMs / 2 ? wantedMs : 0;
  if (isLocal)
    return resultOf(
      await deferredCompletions.until(lookOut, Math.min(delayMs, MAX_LOCAL_DEFER_MS)),
    );
  const activity = { taskToken, activityId, workflowId: workflowExecution?.workflowId ?? '' };
  if (deferredCompletions.defer(lookOut, activity, resultOf, delayMs))
    throw new CompleteAsyncError();
  return resultOf(lookOut.seen);
}
