import { activityInfo, cancellationSignal } from '@temporalio/activity';
import type { ForceCancelResult, RequestRerunInput } from '../../core/activities/index.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { withReruns } from './awaitRerun.ts';
import { requireParentRunner } from './lostRunner.ts';
import { mayForceCancel } from './mayForceCancel.ts';
import { claimedBefore } from './requestRerun.ts';

/**
 * Force-cancels the workflow run of a lost job, so that the job can run again before the CI server
 * has noticed the loss. Everything that permits it is read right before, also that `perDay` leaves a
 * rerun.
 */
export async function forceCancelRun(
  ports: ActivityPorts,
  input: RequestRerunInput,
): Promise<ForceCancelResult> {
  const startedAt = await requireParentRunner(input.runnerName);
  // An earlier attempt may have sent the request before its worker was killed.
  const unsent = { sent: activityInfo().attempt > 1 };
  return await withReruns<ForceCancelResult>(
    ports,
    input,
    async (reruns) => {
      const { scope, job, perDay } = input;
      const signal = cancellationSignal();
      if ((await claimedBefore(input, startedAt)) >= perDay) return unsent;
      const found = await reruns.getJob(scope, job, signal);
      if (found === undefined || !(await mayForceCancel(ports, reruns, input, found)))
        return unsent;
      await reruns.forceCancel(scope, job, found, signal);
      return { sent: true };
    },
    () => unsent,
  );
}
