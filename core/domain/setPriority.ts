import type { SetPriority } from '../contract/index.ts';

/**
 * Temporal's priority of the workflows of a set's runners: 1 to 5, default 3
 * (https://docs.temporal.io/task-queue-priority-fairness).
 */
export const PRIORITY_KEYS: Readonly<Record<SetPriority, number>> = { high: 2, normal: 3, low: 4 };

/**
 * Priority of sets and of commands to them. A worker with a backlog of thousands of runners still
 * controls its sets and answers requests about them.
 */
export const SETS_PRIORITY_KEY = 1;

/**
 * Workflow task timeout of a set (ms). Temporal's default is 10 s
 * (https://docs.temporal.io/encyclopedia/detecting-workflow-failures#workflow-task-timeout). A
 * worker that has evicted a busy set from its cache replays its run, and each step waits behind
 * those of all runners. That takes 13 to 16 s while thousands of runners start. With a timeout of
 * 10 s the replay started again and again, and a set that was continuing as new received no events
 * meanwhile. The disadvantage: if a worker is killed during the task of a set, the set waits for
 * this time until another worker takes it.
 */
export const SET_TASK_TIMEOUT_MS = 30_000;

/**
 * Returns the difference of a runner's priority to the normal one, for the activities that are done
 * for it.
 * @param key - priority key of the runner's workflow
 */
export const priorityOffset = (key: number | undefined): number =>
  key === undefined || key < PRIORITY_KEYS.high || key > PRIORITY_KEYS.low
    ? 0
    : key - PRIORITY_KEYS.normal;
