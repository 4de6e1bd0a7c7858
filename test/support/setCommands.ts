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

/**
 * Lets a running set execute a command.
 * @param request - the same for a command that is sent twice
 * @throws WorkflowFailedError if the command fails
 */
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
