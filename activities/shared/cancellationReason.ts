import { CancelledFailure } from '@temporalio/common';

/**
 * Returns why an activity was cancelled, as the SDK names it; `undefined` if it was not. If its
 * worker shuts down, or a user pauses or resets the activity, the signal is aborted too, but another
 * attempt continues the work.
 */
function cancellationReason({ aborted, reason }: AbortSignal): string | undefined {
  return aborted && reason instanceof CancelledFailure ? reason.message : undefined;
}

/** Returns whether the workflow cancelled the activity. */
export function isWorkflowCancelled(signal: AbortSignal): boolean {
  return cancellationReason(signal) === 'CANCELLED';
}

/**
 * Returns whether the attempt no longer counts: it has timed out, so that another worker continues
 * its work, or its workflow has ended.
 */
export function isAttemptReplaced(signal: AbortSignal): boolean {
  return ['TIMED_OUT', 'NOT_FOUND'].includes(cancellationReason(signal) ?? '');
}
