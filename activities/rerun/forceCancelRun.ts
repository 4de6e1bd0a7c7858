import { cancellationSignal } from '@temporalio/activity';
import type { ForceCancelResult, RequestRerunInput } from '../../core/activities/index.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { withReruns } from './awaitRerun.ts';
import { requireParentRunner } from './lostRunner.ts';
import { mayForceCancel } from './mayForceCancel.ts';
import { claimedBefore } from './requestRerun.ts';
import { beforeRequest, mayBeSent, sendOnce } from './sendOnce.ts';

/**
 * Force-cancels the workflow run of a lost job, so that the job can run again before the CI server
 * has noticed the loss. Everything that permits it is read right before, also that `perDay` leaves a
 * rerun.
 */
export async function forceCancelRun(
  ports: ActivityPorts,
  input: RequestRerunInput,
): Promise<ForceCancelResult> {
  const unsent = { sent: mayBeSent() };
  const startedAt = await beforeRequest(async () => await requireParentRunner(input.runnerName));
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
      await sendOnce(async () => await reruns.forceCancel(scope, job, found, signal));
      return { sent: true };
    },
    () => unsent,
  );
}
