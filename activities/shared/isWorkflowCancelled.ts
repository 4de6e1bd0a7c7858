import { CancelledFailure } from '@temporalio/common';

/**
 * Returns whether the workflow cancelled the activity. If its worker shuts down, or a user pauses or
 * resets the activity, the signal is aborted too, but another attempt continues the work.
 */
export function isWorkflowCancelled({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof CancelledFailure && reason.message === 'CANCELLED';
}
