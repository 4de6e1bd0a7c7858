import { setWorkflowOptions, workflowInfo } from '@temporalio/workflow';

/**
 * For a workflow that has no end of its own: with worker versioning it moves on to each new version, while what it starts ends on the one that it began on.
 * (A worker without a version must not name a behavior: the server refuses its tasks.)
 * https://docs.temporal.io/production-deployment/worker-deployments/worker-versioning#versioning-behaviors
 */
export function movesOnWithUpgrades<Args extends unknown[], Result>(workflow: (...args: Args) => Promise<Result>): void {
  setWorkflowOptions(() => (workflowInfo().currentDeploymentVersion?.deploymentName ? { versioningBehavior: 'AUTO_UPGRADE' } : {}), workflow);
}
