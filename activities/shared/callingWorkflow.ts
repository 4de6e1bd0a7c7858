import { activityInfo } from '@temporalio/activity';
import { invalidInput } from './invalidInput.ts';

/**
 * Returns the ID of the workflow that called this activity, as Temporal reports it.
 * @throws ApplicationFailure `InvalidInput` (non-retryable) if no workflow called it
 */
export function callingWorkflowId(): string {
  const { workflowExecution } = activityInfo();
  if (workflowExecution?.workflowId !== undefined) return workflowExecution.workflowId;
  throw invalidInput([
    {
      code: 'required',
      field: 'workflowId',
      message: 'is missing: only a workflow may ask for this',
    },
  ]);
}
