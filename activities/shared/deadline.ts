import { activityInfo } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { RETRY_BACKOFF } from '../../core/activities/index.ts';
import { exponentialBackoff } from './failures.ts';

/** Time reserved for the attempt itself (ms). */
const MARGIN_MS = 10_000;

/**
 * Makes a failure non-retryable if its retry would start too late for the schedule-to-close timeout
 * of the activity. Otherwise Temporal would report a bare timeout, and the cause of the failures
 * would be lost.
 */
export function nonRetryableAfterDeadline(error: unknown): unknown {
  if (!(error instanceof ApplicationFailure) || error.nonRetryable === true) return error;
  const { attempt, scheduleToCloseTimeoutMs, scheduledTimestampMs } = activityInfo();
  if (scheduleToCloseTimeoutMs <= 0) return error;
  const backoffMs = exponentialBackoff(RETRY_BACKOFF.initialMs, attempt, RETRY_BACKOFF.maxMs);
  const delayMs =
    error.nextRetryDelay === undefined || error.nextRetryDelay === null
      ? backoffMs
      : Number(error.nextRetryDelay);
  const marginMs = Math.min(MARGIN_MS, scheduleToCloseTimeoutMs / 5);
  if (Date.now() + delayMs + marginMs < scheduledTimestampMs + scheduleToCloseTimeoutMs)
    return error;
  return ApplicationFailure.create({
    message: error.message,
    nonRetryable: true,
    ...(typeof error.type === 'string' ? { type: error.type } : {}),
  });
}
