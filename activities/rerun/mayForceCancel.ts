import { cancellationSignal } from '@temporalio/activity';
import type { AwaitRerunInput } from '../../core/activities/index.ts';
import type { RerunCandidate } from '../../core/domain/rerun.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { JobReruns } from '../ports/jobReruns.ts';

/**
 * Returns whether the workflow run of a lost job may be force-cancelled now. The CI server must
 * still have the job in progress on this runner, show the runner as offline, and report neither
 * another job of the run that has not ended nor a cancel.
 */
export async function mayForceCancel(
  { ciServers }: Pick<ActivityPorts, 'ciServers'>,
  reruns: JobReruns,
  input: AwaitRerunInput,
  found: RerunCandidate | undefined,
): Promise<boolean> {
  const { scope, credential, job, runnerName, perRun, lostAtMs, forceCancelAfterMs } = input;
  if (
    forceCancelAfterMs === undefined ||
    Date.now() - lostAtMs < forceCancelAfterMs ||
    found === undefined ||
    found.conclusion !== undefined ||
    found.runnerName !== runnerName ||
    found.attempt > perRun
  )
    return false;
  const signal = cancellationSignal();
  // Its node may only be unreachable for the cluster, and still run the job.
  const runner = await ciServers.get(credential).findRunner(scope, { name: runnerName }, signal);
  if (runner?.online !== false) return false;
  if ((await reruns.endEvidence(scope, job, signal)) !== 'none') return false;
  // The last check, because another job may begin at any time.
  return await reruns.isOnlyActiveJob(scope, job, found, signal);
}
