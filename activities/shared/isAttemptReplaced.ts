import { CancelledFailure } from '@temporalio/common';

/**
 * Returns whether the attempt no longer counts: it has timed out, so that another worker continues
 * its work, or its workflow has ended.
 */
export function isAttemptReplaced({ aborted, reason }: AbortSignal): boolean {
  return (
    aborted &&
    reason instanceof CancelledFailure &&
    (reason.message === 'TIMED_OUT' || reason.message === 'NOT_FOUND')
  );
}
