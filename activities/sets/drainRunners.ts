/** Asks the runners of a set to drain: their jobs may finish. */
import { getClient } from '@temporalio/activity';
import { WorkflowNotFoundError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { RUNNER_LEAVES_ALREADY, cancelSignal, drainUpdate } from '../../core/contract/index.ts';
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
    // To its end, which it comes to at once: one that is only accepted may have been refused, and its handle says nothing of that.
    await client.withDeadline(Date.now() + DEADLINE_MS, async () => await handle.executeUpdate(drainUpdate.name, { args: [{ reason }], updateId: 'drained-by-its-set' }));
    return 'draining';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'gone';
    if (leavesAlready(error)) return 'draining';
    if (!(error instanceof WorkflowUpdateFailedError || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)) throw error;
  }
  // No worker takes the runner's tasks now, or the SDK refused the update for want of a handler: a signal is kept until there is one.
  try {
    await handle.signal(cancelSignal, { mode: 'drain', reason });
    return 'draining';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'gone';
    throw error;
  }
}

/** Refused by the runner itself: it is being torn down. */
function leavesAlready(error: unknown): boolean {
  return error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure && error.cause.type === RUNNER_LEAVES_ALREADY;
}
