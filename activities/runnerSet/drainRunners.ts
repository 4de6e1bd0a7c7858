/** Drains the runners of a set, so that their jobs may finish. */
import { getClient } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import { cancelSignal, type CancelRequest } from '../../core/contract/index.ts';
import type { SetActivities } from '../../core/activities/index.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { forEachLimited } from './forEachLimited.ts';

/**
 * Signals runners to drain. It uses a signal and not the update `drain`, because no runner can
 * reject a signal, and none misses it if no worker polls its task queue. A runner that is being
 * torn down would reject the update, and could then continue with another pod in place of the lost
 * one.
 * @returns the time (ms since the epoch) and the runners that had already ended
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
