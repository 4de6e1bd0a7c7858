/**
 * Finds runners that have ended or never existed. It reads the record of each workflow, because
 * visibility lists may lag.
 */
import { getClient } from '@temporalio/activity';
import type { SetActivities } from '../../core/activities/index.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { forEachLimited } from './forEachLimited.ts';
import { isOpenWorkflow } from './isOpenWorkflow.ts';

/**
 * Returns the given runner workflows that are not open, with the time of the check (ms since the
 * epoch).
 */
export const findEndedRunners: SetActivities['findEndedRunners'] = async ({ workflowIds }) => {
  const ended: string[] = [];
  await withHeartbeats(
    `${workflowIds.length} runners that were not listed`,
    async () =>
      await forEachLimited(workflowIds, async (workflowId) => {
        if (!(await isOpenWorkflow(getClient(), workflowId))) ended.push(workflowId);
      }),
  );
  return { at: Date.now(), ended };
};
