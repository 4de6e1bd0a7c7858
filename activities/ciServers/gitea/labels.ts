/**
 * Returns labels in the form in which Gitea compares them: as they are, without duplicates. Gitea
 * gives a runner no labels of its own, and compares with case.
 */
export function normalizeGiteaLabels(labels: readonly string[]): string[] {
  return [...new Set(labels)];
}
