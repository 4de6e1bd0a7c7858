/**
 * Options and checks of versioned Workers, for workflows that declare no versioning behavior
 * (workflows/shared/versioning.ts).
 */
import type { WorkerDeploymentOptions } from '@temporalio/worker';

/**
 * Returns the options of a versioned Worker. Runners and jobs stay on the version that they started
 * on; all other workflows move to the current one.
 */
export function workerDeploymentOptions(version: {
  readonly deploymentName: string;
  readonly buildId: string;
}): WorkerDeploymentOptions {
  return { useWorkerVersioning: true, version, defaultVersioningBehavior: 'AUTO_UPGRADE' };
}

/**
 * Checks the options of a versioned Worker.
 * @throws Error if sets, which have no end, would stay on the version that they started on
 */
export function checkWorkerDeploymentOptions(options: WorkerDeploymentOptions | undefined): void {
  if (options?.useWorkerVersioning !== true || options.defaultVersioningBehavior === 'AUTO_UPGRADE')
    return;
  throw new Error(
    "workerDeploymentOptions.defaultVersioningBehavior: Holdfast's sets need 'AUTO_UPGRADE'; give your workflows that must stay on their version the behavior 'PINNED' by setWorkflowOptions()",
  );
}
