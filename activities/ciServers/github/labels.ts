/** The label that GitHub gives to every self-hosted runner, and a job may ask for. */
const IMPLICIT_LABEL = 'self-hosted';

/**
 * Returns labels of a runner or of a job as GitHub compares them: without case, each once, and without the one that all runners have.
 * https://docs.github.com/en/actions/how-tos/manage-runners/self-hosted-runners/use-in-a-workflow
 */
export function normalizeGitHubLabels(labels: readonly string[]): string[] {
  const set = new Set(labels.map((label) => label.toLowerCase()));
  set.delete(IMPLICIT_LABEL);
  return [...set];
}
