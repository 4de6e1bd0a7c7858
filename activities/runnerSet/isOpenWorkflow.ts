import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { isOpen } from '../../core/domain/workflowStatus.ts';

/**
 * Returns whether a workflow is open. It reads the record of the workflow, because a visibility
 * list may lag.
 */
export async function isOpenWorkflow(
  { workflow }: Pick<Client, 'workflow'>,
  workflowId: string,
): Promise<boolean> {
  try {
    return isOpen((await workflow.getHandle(workflowId).describe()).status);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
