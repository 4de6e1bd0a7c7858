/** Asks the runners of a set to drain: their jobs may finish. */
import { getClient } from '@temporalio/activity';
import { WorkflowNotFoundError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowUpdateStage } from '@temporalio/client';
import { cancelSignal, drainUpdate } from '../../core/contract/index.ts';
import type { SetActivities } from '../../core/calls/index.ts';
import { withHeartbeats } from '../heartbeats.ts';
import { each } from './each.ts';

const DEADLINE_MS = 10_000;

export const drainRunners: SetActivities['drainRunners'] = async ({ runners }) => {
  const gone: string[] = [];
  await withHeartbeats(`${runners.length} runners to drain`, async () =>
    await each(runners, async ({ workflowId, why }) => {
      if ((await drain(workflowId, why)) === 'gone') gone.push(workflowId);
    }),
  );
  return { at: Date.now(), gone };
};

/** `gone`: it has ended. */
async function drain(workflowId: string, reason: string): Promise<'draining' | 'gone'> {
  const client = getClient();
  const handle = client.workflow.getHandle(workflowId);
  try {
    await client.withDeadline(Date.now() + DEADLINE_MS, async () => await handle.startUpdate(drainUpdate.name, { args: [{ reason }], updateId: 'drained-by-its-set', waitForStage: WorkflowUpdateStage.ACCEPTED }));
    return 'draining';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'gone';
    // Refused: it is being torn down already.
    if (error instanceof WorkflowUpdateFailedError) return 'draining';
    if (!(error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)) throw error;
  }
  // No worker takes the runner's tasks now: a signal is kept until one does.
  try {
    await handle.signal(cancelSignal, { mode: 'drain', reason });
    return 'draining';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'gone';
    throw error;
  }
}
