import { activityInfo, cancellationSignal } from '@temporalio/activity';
import type { ForceCancelResult, RequestRerunInput } from '../../core/activities/index.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { changeHeartbeatDetails, heartbeatDetails } from '../shared/heartbeats.ts';
import { withReruns } from './awaitRerun.ts';
import { requireParentRunner } from './lostRunner.ts';
import { mayForceCancel } from './mayForceCancel.ts';
import { claimedBefore, requestOnce } from './requestRerun.ts';

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
  const isRetry = activityInfo().attempt > 1;
  const unsent = { sent: isRetry && heartbeatDetails().unanswered !== false };
  return await withReruns<ForceCancelResult>(
    ports,
    input,
    async (reruns) => {
      const { scope, job, perDay } = input;
      const signal = cancellationSignal();
      const found = await beforeRequest(async () => {
        if ((await claimedBefore(input, startedAt)) >= perDay) return undefined;
        const one = await reruns.getJob(scope, job, signal);
        return (await mayForceCancel(ports, reruns, input, one)) ? one : undefined;
      });
      if (found === undefined) return unsent;
      await requestOnce(async () => await reruns.forceCancel(scope, job, found, signal));
      return { sent: true };
    },
    () => unsent,
  );
}

/** If the first attempt fails here, the next one must know that it has sent nothing. */
async function beforeRequest<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (activityInfo().attempt === 1) changeHeartbeatDetails({ unanswered: false });
    throw error;
  }
}
