/** Maximum time of a Date (https://tc39.es/ecma262/#sec-time-values-and-time-range). */
const MAX_MS = 8.64e15;

/**
 * Formats a time in ISO 8601. A time that a Date cannot express becomes the nearest one that it can,
 * and NaN becomes the start of 1970: an error in a workflow's display would block the workflow.
 * @param ms - ms since the epoch
 */
export function isoTime(ms: number): string {
  const limited = Math.min(Math.max(ms, -MAX_MS), MAX_MS);
  return new Date(Number.isNaN(limited) ? 0 : limited).toISOString();
}
