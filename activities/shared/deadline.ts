import { activityInfo } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { RETRY_BACKOFF } from '../../core/activities/index.ts';
import { exponentialBackoff } from './failures.ts';

/** A try needs some time itself. */
const MARGIN_MS = 10_000;

/**
 * Makes a failure final when its retry would come too late for the activity's schedule-to-close timeout. Temporal would otherwise report
 * a bare timeout, and with it lose the one thing that people want to know: what went wrong all the time.
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
