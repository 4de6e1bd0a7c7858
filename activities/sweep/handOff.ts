import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import { DEREGISTRATION_WORKFLOW, type DeregistrationInput } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { CredentialScope } from '../../core/input/sweep.ts';

/**
 * Hands the removal of a registration off to a workflow of its own. That workflow also records why
 * the runner was stopped, until its retention ends: the workflow of the runner is already closed.
 * @param reason - shown to people
 * @returns the workflow ID
 */
export async function handOff(
  client: Client,
  taskQueue: string,
  runner: DeregistrationInput['runner'],
  { scope, credential }: CredentialScope,
  reason: string,
): Promise<string> {
  const workflowId = `deregistration-${runner.name}`;
  const input: DeregistrationInput = {
    [scope.kind]: scope.name,
    credential,
    runner: { name: runner.name, ...omitUndefined({ id: runner.id }) },
    reason,
  };
  try {
    await client.workflow.start(DEREGISTRATION_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [input],
      staticSummary: reason,
      staticDetails: `Removes the registration of ${runner.name}`,
    });
  } catch (error) {
    // Another workflow is already removing the registration.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  return workflowId;
}
