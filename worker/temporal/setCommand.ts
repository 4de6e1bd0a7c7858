/**
 * Options that start the workflow of a command to a set. Controller and command-line tool share
 * them.
 */
import { randomUUID } from 'node:crypto';
import type { WorkflowStartOptions } from '@temporalio/client';
import { setCommandId, type SetCommand, type SetCommandInput } from '../../core/contract/index.ts';
import { SETS_PRIORITY_KEY } from '../../core/domain/setPriority.ts';
import { workflowSummary } from '../../core/domain/workflowSummary.ts';

/**
 * Returns the options for a command.
 * @param request - unique ID of the request, see {@link setCommandId}
 */
export function setCommandOptions(
  set: string,
  command: SetCommand,
  taskQueue: string,
  request: string = randomUUID(),
): WorkflowStartOptions {
  const input: SetCommandInput = { set, ...command };
  return {
    workflowId: setCommandId(set, request),
    taskQueue,
    args: [input],
    // Keep a command whose start succeeded, but whose response was lost.
    workflowIdConflictPolicy: 'USE_EXISTING',
    priority: { priorityKey: SETS_PRIORITY_KEY },
    staticSummary: workflowSummary(`${command.command} the set ${set}`),
  };
}
