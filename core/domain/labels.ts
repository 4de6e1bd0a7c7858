/** Which jobs a runner can take, by labels. They are normalized: each CI server has rules of its own for which are the same. Pure. */

/** Maximum number of labels of a runner. No runner can take a job that asks for more. */
export const MAX_LABELS = 100;

/** Whether a runner with these labels has every label that the job asks for. */
export function labelsMatch(
  runnerLabels: ReadonlySet<string>,
  jobLabels: readonly string[],
): boolean {
  return jobLabels.length <= MAX_LABELS && jobLabels.every((label) => runnerLabels.has(label));
}
