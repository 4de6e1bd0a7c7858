/**
 * What an activity that will be tried again fails with: each reason has a retry clock of its own. Temporal counts tries of all kinds
 * together: by that count, one lost connection after hours of waiting for a job to end would mean minutes of waiting more.
 */
import { activityInfo, heartbeat } from '@temporalio/activity';
import { toFailure, type RetryDelays } from './failures.ts';
import { previousRejections } from './heartbeats.ts';
import { CiServerError, ComputeError } from '../ports.ts';

/** A port's error as {@link toFailure} has it, with the delay that is due by the clock of its reason. */
export function refusal(error: unknown, pace: RetryDelays, refusalIsFinal: boolean): unknown {
  const hasClock =
    (error instanceof CiServerError || error instanceof ComputeError) &&
    error.retryAfterMs === undefined &&
    ['busy', 'unavailable', 'forbidden'].includes(error.kind);
  return toFailure(error, pace, refusalIsFinal, hasClock ? countRejection(error.kind) : 1);
}

/** How often this activity has been refused for this reason, this time included: the next try, on whatever worker, knows of it. */
export function countRejection(reason: string): number {
  // A local activity has no next try.
  if (activityInfo().isLocal) return 1;
  const refusals = previousRejections();
  const times = (refusals[reason] ?? 0) + 1;
  heartbeat({ rejections: { ...refusals, [reason]: times } });
  return times;
}
