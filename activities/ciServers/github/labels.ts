/** The label that GitHub gives to every self-hosted runner, and a job may ask for. */
const IMPLICIT_LABEL = 'self-hosted';

/**
 * Returns labels of a job as GitHub compares them: without case, each once. No label is something
 * else than `self-hosted` alone, which asks for any self-hosted runner.
 * https://docs.github.com/en/actions/how-tos/manage-runners/self-hosted-runners/use-in-a-workflow
 */
export function normalizeGitHubLabels(labels: readonly string[]): string[] {
  return [...new Set(labels.map((label) => label.toLowerCase()))];
}

/** Returns labels of a runner as GitHub compares them, with the one that all runners have. */
export function normalizeGitHubRunnerLabels(labels: readonly string[]): string[] {
  return normalizeGitHubLabels([...labels, IMPLICIT_LABEL]);
}
