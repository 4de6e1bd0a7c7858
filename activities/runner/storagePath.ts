/** What jobs' steps leave is kept apart by run: only the steps of a run have its folder. */
import { activityInfo, getClient } from '@temporalio/activity';
import { jobRunOfStep, storagePathError } from '../../core/domain/artifactLayout.ts';
import type { StorageRequest } from '../../core/domain/pod.ts';
import { ComputeError } from '../ports.ts';

/**
 * By what Temporal itself says of who asks: a run's id is Temporal's to give, and a child has no parent but the one that started it. What the input says
 * can be anybody's.
 * @throws ComputeError `invalid`: it is another's
 */
export async function assertOwnStoragePath(storage: StorageRequest): Promise<void> {
  const fault = storagePathError(storage);
  if (fault !== undefined) throw new ComputeError('invalid', `storage: ${fault}`);
  const { workflowExecution } = activityInfo();
  const parent = workflowExecution && (await describe(workflowExecution)).parentExecution;
  const buildId = jobRunOfStep(storage.path)?.buildId;
  // A job that was reset goes on as another run, and keeps its folder.
  if (
    parent?.runId === buildId ||
    (parent && (await describe(parent)).raw.workflowExecutionInfo?.firstRunId === buildId)
  )
    return;
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
