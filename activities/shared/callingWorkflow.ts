import { activityInfo } from '@temporalio/activity';
import { invalidInput } from './invalidInput.ts';

/**
 * Returns the ID of the workflow that has called this activity, which is Temporal's own word.
 * @throws ApplicationFailure `InvalidInput` (non-retryable): no workflow has
 */
export function callingWorkflowId(): string {
  const { workflowExecution } = activityInfo();
  if (workflowExecution?.workflowId !== undefined) return workflowExecution.workflowId;
  throw invalidInput([
    { field: 'workflowId', message: 'is missing: only a workflow may ask for this' },
  ]);
}
