/** Which runners have ended, or were never there: by Temporal's own record of each, because a list by visibility may be late. */
import { getClient } from '@temporalio/activity';
import type { SetActivities } from '../../core/activities/index.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { forEachLimited } from './forEachLimited.ts';
import { isRunning } from './isRunning.ts';

export const findEndedRunners: SetActivities['findEndedRunners'] = async ({ workflowIds }) => {
  const ended: string[] = [];
  await withHeartbeats(
    `${workflowIds.length} runners that were not listed`,
    async () =>
      await forEachLimited(workflowIds, async (workflowId) => {
        if (!(await isRunning(getClient(), workflowId))) ended.push(workflowId);
      }),
  );
  return { at: Date.now(), ended };
};
