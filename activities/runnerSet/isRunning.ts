import { WorkflowNotFoundError, type Client } from '@temporalio/client';

/** Whether a workflow runs, by Temporal's own record of it: a list by visibility may be late. */
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
