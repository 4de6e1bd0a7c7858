/**
 * Returns Temporal's fairness key of a scope on a task queue: at most 64 bytes
 * (https://docs.temporal.io/task-queue-priority-fairness). Scopes are ASCII.
 */
export const fairnessKey = (scope: string): string => scope.slice(0, 64);
