/** Asks the runners of a set to drain: their jobs may finish. */
import { getClient } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import { cancelSignal, type CancelRequest } from '../../core/contract/index.ts';
import type { SetActivities } from '../../core/activities/index.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { forEachLimited } from './forEachLimited.ts';

/**
 * By a signal, not by the update `drain`: no runner can refuse it, and none misses it because no worker takes its tasks now. One that is being
 * torn down would refuse, and might then go on with another runner in the place of the one that it lost.
 */
export const drainRunners: SetActivities['drainRunners'] = async ({ runners }) => {
  const ended: string[] = [];
  await withHeartbeats(
    `${runners.length} runners to drain`,
    async () =>
      await forEachLimited(runners, async ({ workflowId, reason }) => {
        const request: CancelRequest = { mode: 'drain', planned: true, reason };
        try {
          await getClient().workflow.getHandle(workflowId).signal(cancelSignal, request);
        } catch (error) {
          if (!(error instanceof WorkflowNotFoundError)) throw error;
          ended.push(workflowId);
        }
      }),
  );
  return { at: Date.now(), ended };
};
