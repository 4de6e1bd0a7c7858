/**
 * Matches jobs and runners by their labels. The labels are normalized, because each CI server has
 * its own rules for equal labels. Pure.
 */

/** Maximum number of labels of a runner. No runner can take a job that requests more. */
export const MAX_LABELS = 100;

/** Returns whether a runner with these labels has every label that the job requests. */
export function labelsMatch(
  runnerLabels: ReadonlySet<string>,
  jobLabels: readonly string[],
): boolean {
  return jobLabels.length <= MAX_LABELS && jobLabels.every((label) => runnerLabels.has(label));
}
