/**
 * Counts the rejections of an activity by reason, so that each reason has a backoff of its own.
 * Temporal counts all attempts together. With that count, one lost connection after hours of
 * waiting for a job would cause a delay of minutes.
 */
import { activityInfo } from '@temporalio/activity';
import { toFailure, type RetryDelays } from './failures.ts';
import { changeHeartbeatDetails, heartbeatDetails } from './heartbeats.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import { ComputeError } from '../ports/computeError.ts';

/** Maps the error of a port as {@link toFailure} does, with the backoff of its own reason. */
export function rejection(
  error: unknown,
  pace: RetryDelays,
  { isFinal }: { readonly isFinal: boolean },
): unknown {
  const hasClock =
    (error instanceof CiServerError || error instanceof ComputeError) &&
    error.retryAfterMs === undefined &&
    ['busy', 'unavailable', 'forbidden'].includes(error.kind);
  return toFailure(error, pace, {
    rejectionIsFinal: isFinal,
    times: hasClock ? countRejection(error.kind) : 1,
  });
}

/**
 * Increments and returns the number of rejections of this activity for this reason, including this
 * one. The heartbeat details pass it to the next attempt on any worker.
 */
export function countRejection(reason: string): number {
  // A local activity has no next attempt that would read the heartbeat details.
  if (activityInfo().isLocal) return 1;
  const { rejections } = heartbeatDetails();
  const times = (rejections[reason] ?? 0) + 1;
  changeHeartbeatDetails({ rejections: { ...rejections, [reason]: times } });
  return times;
}
