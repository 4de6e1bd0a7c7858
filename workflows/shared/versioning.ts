import { setWorkflowOptions, workflowInfo } from '@temporalio/workflow';

/**
 * Pins executions of a workflow of limited duration to the worker version on which they started, if
 * worker versioning is on.
 *
 * All other workflows set no behavior and move to each new version, by the default of their Worker
 * (worker/plugin/versioning.ts). The first task of an execution fixes the behavior permanently, and
 * executions without an end must survive versioning being turned on and off. A worker without a
 * version must not set a behavior, because the server rejects its tasks.
 *
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
