import type { SetPriority } from '../contract/index.ts';

/** Temporal's priority of the workflows of a set's runners: 1 to 5, 3 where none is given (https://docs.temporal.io/task-queue-priority-fairness). */
export const PRIORITY_KEYS: Readonly<Record<SetPriority, number>> = { high: 2, normal: 3, low: 4 };

/** Of sets and of commands to them: a worker that is behind with thousands of runners still steers them, and answers what people ask of a set. */
export const SETS_PRIORITY_KEY = 1;

/**
 * How long a workflow task of a set may take, in ms; Temporal's default is 10 s (https://docs.temporal.io/encyclopedia/detecting-workflow-failures#workflow-task-timeout).
 * A worker that has forgotten a busy set reads its run anew, each step behind those of all runners, in 13 to 16 s where thousands come up. Under 10 s
 * that was begun again and again, and a set that was continuing as new took no news meanwhile. The price: so long a set waits for another worker if one is killed over its task.
 */
export const SET_TASK_TIMEOUT_MS = 30_000;

/** By how much what is done for a runner comes before (or after) the same for others. @param key - of the runner's workflow */
export const priorityOffset = (key: number | undefined): number =>
  key === undefined || key < PRIORITY_KEYS.high || key > PRIORITY_KEYS.low
    ? 0
    : key - PRIORITY_KEYS.normal;
