/** Label that GitHub gives to every self-hosted runner, and that a job may request. */
const IMPLICIT_LABEL = 'self-hosted';

/**
 * Returns the labels of a job in the form in which GitHub compares them: in lower case, without
 * duplicates. No label is different from `self-hosted` alone, which requests any self-hosted
 * runner.
 * https://docs.github.com/en/actions/how-tos/manage-runners/self-hosted-runners/use-in-a-workflow
 */
export function normalizeGitHubLabels(labels: readonly string[]): string[] {
  return [...new Set(labels.map((label) => label.toLowerCase()))];
}

/**
 * Returns the labels of a runner in the form in which GitHub compares them, including the one that
 * all runners have.
 */
export function normalizeGitHubRunnerLabels(labels: readonly string[]): string[] {
  return normalizeGitHubLabels([...labels, IMPLICIT_LABEL]);
}
