/** Keeps the files of jobs apart by run: only the steps of a run may use its directory or claim. */
import { activityInfo, getClient } from '@temporalio/activity';
import { jobRunOfStep, storagePathError } from '../../core/domain/artifactLayout.ts';
import type { RunnerIdentity, StorageRequest } from '../../core/domain/pod.ts';
import { ComputeError } from '../ports/computeError.ts';

/**
 * Verifies that the runner is a step of the job run that owns the storage path. Uses only what
 * Temporal itself reports about the calling workflow: Temporal assigns run IDs, and the parent of a
 * child workflow is the workflow that started it. The input proves nothing, because anyone can
 * write it.
 * @returns the workflow of the job, and its first run
 * @throws ComputeError `invalid` if the path is invalid or belongs to another run
 */
export async function jobOfStep(
  storage: StorageRequest,
): Promise<Pick<RunnerIdentity, 'workflowId' | 'firstRunId'>> {
  const fault = storagePathError(storage);
  if (fault !== undefined) throw new ComputeError('invalid', `storage: ${fault}`);
  const { workflowExecution } = activityInfo();
  const parent = workflowExecution && (await describe(workflowExecution)).parentExecution;
  const buildId = jobRunOfStep(storage.path)?.buildId;
  // A reset job continues as another run and keeps its directory.
  if (
    parent?.workflowId &&
    buildId !== undefined &&
    (parent.runId === buildId ||
      (await describe(parent)).raw.workflowExecutionInfo?.firstRunId === buildId)
  )
    return { workflowId: parent.workflowId, firstRunId: buildId };
  throw new ComputeError(
    'invalid',
    `storage: "${storage.path}" is for the steps of the job's run ${buildId} alone, and ${parent ? `${parent.workflowId} (${parent.runId})` : 'no job'} has started this runner: start it as a step of a job`,
  );
}

async function describe({
  workflowId,
  runId,
}: {
  readonly workflowId?: string | null;
  readonly runId?: string | null;
}) {
  return await getClient()
    .workflow.getHandle(workflowId ?? '', runId ?? '')
    .describe();
}
