/** Which jobs a runner can take, by labels: they are the same in upper and lower case. */

/** More labels than a runner can have (GitHub: 100): no runner can take the job, and its labels are not worth looking at. */
export const MAX_LABELS = 100;

/** Labels of a runner, or of a job, as they are compared. Without `self-hosted`: each of our runners is that. */
export function normalizeLabels(labels: readonly string[]): ReadonlySet<string> {
  const set = new Set(labels.map((label) => label.toLowerCase()));
  set.delete('self-hosted');
  return set;
}

/** Has a runner with these labels every label that the job asks for? */
export function labelsMatch(
  runnerLabels: readonly string[],
  jobLabels: readonly string[],
): boolean {
  if (jobLabels.length > MAX_LABELS) return false;
  const has = normalizeLabels(runnerLabels);
  return [...normalizeLabels(jobLabels)].every((label) => has.has(label));
}
