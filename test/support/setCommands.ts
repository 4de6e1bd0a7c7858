import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import {
  SET_COMMAND_WORKFLOW,
  setCommandId,
  setWorkflowId,
  type SetCommandResult,
  type SetCommand,
  type SetCommandInput,
} from '../../core/contract/index.ts';

/** Has a running set carry out a command. @param request - the same for a command that is sent twice @throws WorkflowFailedError when it does not */
export async function notifySet(
  { workflow }: Client,
  set: string,
  command: SetCommand,
  request: string = randomUUID(),
): Promise<SetCommandResult> {
  const { taskQueue } = await workflow.getHandle(setWorkflowId(set)).describe();
  return await workflow.execute<(input: SetCommandInput) => Promise<SetCommandResult>>(
    SET_COMMAND_WORKFLOW,
    { taskQueue, workflowId: setCommandId(set, request), args: [{ set, ...command }] },
  );
}
