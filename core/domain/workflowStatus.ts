/** Whether a workflow is open, by its status and in list filters. */

/** Statuses of closed workflows, as Temporal's client names them. */
const CLOSED: ReadonlySet<string> = new Set([
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'TERMINATED',
  'CONTINUED_AS_NEW',
  'TIMED_OUT',
]);

/**
 * List filter for open workflows. It includes paused ones (`temporal workflow pause`), which
 * a filter for the status Running does not. Every supported server has it.
 */
export const OPEN_FILTER = 'CloseTime IS NULL';

/**
 * Whether a workflow is open, which means running or paused. A paused workflow keeps its pod, and
 * continues when it is unpaused. A status that is unknown here also counts as open, because
 * replacing or deleting what a workflow still uses is worse than waiting for it.
 */
export function isOpen({ name }: { readonly name: string }): boolean {
  return !CLOSED.has(name);
}

/** Whether a workflow is paused in Temporal. */
export function isPaused({ name }: { readonly name: string }): boolean {
  return name === 'PAUSED';
}
