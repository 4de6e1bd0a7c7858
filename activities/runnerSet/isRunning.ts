import { WorkflowNotFoundError, type Client } from '@temporalio/client';

/**
 * Returns whether a workflow is running. It reads the record of the workflow, because a visibility
 * list may lag.
 */
export async function isRunning(
  { workflow }: Pick<Client, 'workflow'>,
  workflowId: string,
): Promise<boolean> {
  try {
    return (await workflow.getHandle(workflowId).describe()).status.name === 'RUNNING';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
