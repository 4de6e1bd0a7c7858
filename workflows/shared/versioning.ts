import { setWorkflowOptions, workflowInfo } from '@temporalio/workflow';

/**
 * For a workflow that ends where it began: with worker versioning it stays on its version. All others say nothing, and move on with each new one, by the default
 * of their Worker (worker/plugin/versioning.ts): what an execution says is decided in its first task for good, and those without an end have to live through versioning
 * being turned on, and off. (A worker without a version must not name a behavior: the server refuses its tasks.)
 * https://docs.temporal.io/production-deployment/worker-deployments/worker-versioning#versioning-behaviors
 */
export function pinVersion<Args extends unknown[], Result>(
  workflow: (...args: Args) => Promise<Result>,
): void {
  setWorkflowOptions(
    () =>
      workflowInfo().currentDeploymentVersion?.deploymentName
        ? { versioningBehavior: 'PINNED' }
        : {},
    workflow,
  );
}
