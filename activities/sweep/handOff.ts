import { WorkflowExecutionAlreadyStartedError, type Client } from '@temporalio/client';
import { DEREGISTRATION_WORKFLOW, type DeregistrationInput } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { CredentialScope } from '../../core/input/sweep.ts';

/**
 * Has a workflow of its own go on removing a registration. It also keeps why its runner went, for as long as Temporal keeps workflows: the
 * runner's own record is closed.
 * @param reason - shown to people
 * @returns its id
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
    // Somebody is at it already.
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
  return workflowId;
}
