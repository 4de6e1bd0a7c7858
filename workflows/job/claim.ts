import { log, workflowInfo } from '@temporalio/workflow';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { JOB_CLAIM } from '../../core/domain/pod.ts';
import { STEP_PATHS } from '../../core/domain/podTemplate.ts';
import { clusterActivities, toCallResult } from '../shared/activityProxies.ts';
import type { JobRun } from './jobRun.ts';

/** Time after which the deletion is left to the sweep (ms). */
const DELETION_TIMEOUT_MS = 600_000;
/** The same for a job that was ended by force (ms). */
const FORCED_DELETION_TIMEOUT_MS = 10_000;

/** Deletes the claim of the job, after the last pod of its steps has been deleted. */
export async function deleteJobClaim(run: JobRun): Promise<void> {
  const { claimLocation: location } = run.spec;
  if (location === undefined) return;
  const withinMs = run.cancel?.mode === 'force' ? FORCED_DELETION_TIMEOUT_MS : DELETION_TIMEOUT_MS;
  const untilMs = Date.now() + withinMs;
  run.waitFor('the claim of the job to be deleted', untilMs);
  const { workflowId, firstExecutionRunId: firstRunId } = workflowInfo();
  const options = { summary: "Delete the job's claim", withinMs };
  const called = await toCallResult(
    clusterActivities(options).tearDown({
      location,
      // All attempts of a workflow share a claim.
      identity: { workflowId, firstRunId, attempt: 1 },
      claims: [{ name: JOB_CLAIM, mountPath: STEP_PATHS.shared }],
      ...omitUndefined({ namespace: location.namespace }),
    }),
  );
  if (called.kind === 'done') return;
  const reason = called.kind === 'failed' ? called.message : called.kind;
  log.warn("failed to delete the job's claim; a sweep that may list claims deletes it", { reason });
  run.logLine(
    `warning: failed to delete the job's claim; a sweep that may list claims deletes it: ${reason}`,
  );
}
