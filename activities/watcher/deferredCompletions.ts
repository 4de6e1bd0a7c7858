/**
 * A TRICK, all of it in this file.
 *
 * What: an activity that has done its work holds its answer back for a moment, until what its workflow would wait for next has come: a new
 * pod is online, a deleted one is gone.
 * Why: it saves the workflow a task and a wait of its own.
 * What holds if it fails: everything. Answers that are held back are known to this process only; one that dies with them is noticed by the
 * heartbeat timeout, and the next try finds the world as it is. An answer that comes too early, or without what was hoped for, makes the
 * workflow wait as it would have without this. A cancel that comes meanwhile is acted upon when the answer is there.
 */
import { CompleteAsyncError, activityInfo } from '@temporalio/activity';
import { conditionMet, type PodCondition } from '../../core/domain/podConditions.ts';
import type { PodRef, PodView } from '../../core/domain/pod.ts';

export interface DeferredCompletion {
  readonly taskToken: Uint8Array;
  readonly podName: string;
  readonly result: unknown;
}

/** Somebody who wants to know when a pod's condition holds; told of every change from the start. */
export interface PodWaiter {
  readonly pod: PodRef;
  readonly until: PodCondition;
  /** The pod as it was last seen since. */
  seen?: PodView;
  /** Set while the activity's answer is held back. */
  held?: { readonly timer: NodeJS.Timeout; readonly give: (seen: PodView | undefined) => void };
}

/** Shorter than the heartbeat timeout of the activities concerned (15 s, workflows/shared/activityProxies.ts), which counts on meanwhile. */
const MAX_MS = 5_000;
/** In a local activity, which keeps its workflow's queries and updates waiting. */
export const MAX_LOCAL_DEFER_MS = 2_000;

export class DeferredCompletions {
  readonly longestMs: number;
  readonly #lookOuts = new Map<string, PodWaiter>();
  #answer: ((answer: DeferredCompletion) => void) | undefined;

  /** @param longestMs - for which an answer is held back @default 5000 */
  constructor(longestMs: number = MAX_MS) {
    this.longestMs = longestMs;
  }

  /** From now on answers can be given. */
  open(answer: (answer: DeferredCompletion) => void): void {
    this.#answer = answer;
  }

  /** Has everybody answered with what is known, and holds no answer back any more. */
  close(): void {
    for (const lookOut of this.#lookOuts.values()) this.#settle(lookOut);
    this.#answer = undefined;
  }

  addWaiter(pod: PodRef, until: PodCondition): PodWaiter {
    const lookOut: PodWaiter = { pod, until };
    this.#lookOuts.set(keyOf(until, pod), lookOut);
    return lookOut;
  }

  /**
   * Holds the answer back until the condition holds.
   * @returns false where that cannot be, or need not, be waited for
   */
  defer(
    lookOut: PodWaiter,
    taskToken: Uint8Array,
    resultOf: (pod: PodView | undefined) => unknown,
    withinMs: number,
  ): boolean {
    return this.#hold(
      lookOut,
      (seen) => this.#answer?.({ taskToken, podName: lookOut.pod.name, result: resultOf(seen) }),
      withinMs,
    );
  }

  /** @returns the pod as it was last seen, when the condition holds or the time is over */
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

  /** A pod has changed. @returns whether that has answered somebody who waited for this condition */
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

  /** Nobody wants to know any more. */
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
 * The last step of an activity: returns its result, or holds it back. A local activity is waited for, another gives its slot back.
 * @param lookOut - absent where nothing tells of changes
 * @param completeWithinMs - when the workflow has something else to do
 * @throws CompleteAsyncError when the result will be given later: when the condition holds, or after a while
 */
export async function completeOrDefer<T>(
  deferredCompletions: DeferredCompletions | undefined,
  lookOut: PodWaiter | undefined,
  resultOf: (pod: PodView | undefined) => T,
  completeWithinMs = Number.POSITIVE_INFINITY,
): Promise<T> {
  if (deferredCompletions === undefined || lookOut === undefined) return resultOf(lookOut?.seen);
  const { taskToken, scheduledTimestampMs, scheduleToCloseTimeoutMs, isLocal } = activityInfo();
  const leftMs =
    scheduleToCloseTimeoutMs > 0
      ? scheduledTimestampMs + scheduleToCloseTimeoutMs - Date.now()
      : Number.POSITIVE_INFINITY;
  // What is done must not come too late for its deadline only because of this.
  const wantedMs = Math.min(deferredCompletions.longestMs, completeWithinMs);
  const delayMs = wantedMs < leftMs / 2 ? wantedMs : 0;
  if (isLocal)
    return resultOf(
      await deferredCompletions.until(lookOut, Math.min(delayMs, MAX_LOCAL_DEFER_MS)),
    );
  if (deferredCompletions.defer(lookOut, taskToken, resultOf, delayMs))
    throw new CompleteAsyncError();
  return resultOf(lookOut.seen);
}
