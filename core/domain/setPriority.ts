import type { SetPriority } from '../contract/index.ts';

/** Temporal's priority of the workflows of a set's runners: 1 to 5, 3 where none is given (https://docs.temporal.io/task-queue-priority-fairness). */
export const PRIORITY_KEYS: Readonly<Record<SetPriority, number>> = { high: 2, normal: 3, low: 4 };

/** Of sets and of commands to them: a worker that is behind with thousands of runners still steers them, and answers what people ask of a set. */
export const SETS_PRIORITY_KEY = 1;

/** By how much what is done for a runner comes before (or after) the same for others. @param key - of the runner's workflow */
export const priorityShift = (key: number | undefined): number => (key === undefined || key < PRIORITY_KEYS.high || key > PRIORITY_KEYS.low ? 0 : key - PRIORITY_KEYS.normal);
