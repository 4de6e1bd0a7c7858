import { activityInfo, getClient } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import { listenerHash } from './admitListener.ts';
import {
  LISTENER_INPUT_MEMO,
  SCALE_SET_LISTENER_WORKFLOW,
  listenerChangedSignal,
  scaleSetListenerWorkflowId,
  type ScaleSetListenerInput,
} from '../../core/contract/index.ts';

/** Starts the listener of a set, or sends the changed input to the running one. Idempotent. */
export async function startListener(input: ScaleSetListenerInput): Promise<{ at: number }> {
  const client = getClient();
  const workflowId = scaleSetListenerWorkflowId(input.set);
  const hash = listenerHash(input);
  await client.workflow.start(SCALE_SET_LISTENER_WORKFLOW, {
    workflowId,
    taskQueue: activityInfo().taskQueue,
    args: [input],
    workflowIdConflictPolicy: 'USE_EXISTING',
    memo: { [LISTENER_INPUT_MEMO]: hash },
    staticSummary: `listener of the scale set ${input.name}`,
  });
  const handle = client.workflow.getHandle(workflowId);
  const { memo } = await handle.describe();
  if (memo?.[LISTENER_INPUT_MEMO] === hash) return { at: Date.now() };
  try {
    await handle.signal(listenerChangedSignal, { input });
  } catch (error) {
    // It has ended meanwhile. The set asks again.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  return { at: Date.now() };
}
