/** Decides whether a job whose runner was lost may run again. Pure. */
import type { RerunReason } from '../contract/rerun.ts';

/** State of a job and its workflow run, as the CI server reports it now. */
export interface RerunCandidate {
  /** ID of the workflow run. */
  readonly runId: string;
  /** Attempt of the workflow run that the job belongs to. */
  readonly attempt: number;
  /**
   * Latest attempt of the workflow run. Absent while the job has no conclusion, because a run is not
   * rerun before its jobs have ended.
   */
  readonly latestAttempt?: number;
  /** Later attempt in which the same job runs or has run again. */
  readonly rerunAttempt?: number;
  /** Whether all jobs of the latest attempt have ended. */
  readonly runEnded: boolean;
  readonly runnerName?: string;
  /** Conclusion of the job. Absent while it has none. */
  readonly conclusion?: string;
  /** Time at which the job ended, by the CI server's clock (ms since the epoch). */
  readonly completedAt?: number;
}

/**
 * Report of the CI server on the end of a job. `shutdown`: its runner was shut down. `lost`: its
 * runner stopped answering. `cancelled`: someone cancelled it. `cancelled_by_credential`: the user
 * or App of the credential did, and no one else. `none`: not one of these.
 */
export type EndEvidence = 'shutdown' | 'lost' | 'cancelled' | 'cancelled_by_credential' | 'none';

/** Facts about the loss, and limits. */
export interface LossFacts {
  readonly runnerName: string;
  /** Time at which the runner was asked to stop (ms since the epoch). */
  readonly stoppedAt?: number;
  /** Whether the supervisor has recorded that the stop interrupted the job. */
  readonly recorded: boolean;
  readonly perRun: number;
}

/**
 * Decision on a rerun. `wait`: for the conclusion of the job, or for the end of the run, without
 * which a rerun is rejected. `prove`: the evidence of the CI server decides.
 */
export type RerunDecision =
  | { readonly kind: 'skip'; readonly reason: RerunReason }
  | { readonly kind: 'wait'; readonly for: 'conclusion' | 'run' }
  | { readonly kind: 'prove' }
  | { readonly kind: 'rerun' };

/**
 * Decides by the first row that matches. A job that failed by itself, succeeded, or was cancelled
 * by someone never runs again. Other jobs of the same workflow run may have been rerun meanwhile.
 */
export function decideRerun(job: RerunCandidate, loss: LossFacts): RerunDecision {
  const { runnerName, conclusion, attempt, rerunAttempt } = job;
  if (rerunAttempt !== undefined) return skip('already_rerun');
  if (runnerName !== undefined && runnerName !== loss.runnerName) return skip('other_runner');
  if (conclusion === undefined) return { kind: 'wait', for: 'conclusion' };
  // A job that another runner was to get has no runner in its end.
  if (runnerName === undefined) return skip('other_runner');
  if (conclusion === 'success') return skip('succeeded');
  if (conclusion !== 'failure' && conclusion !== 'cancelled') return skip('other_conclusion');
  if (attempt > loss.perRun) return skip('per_run');
  if (!job.runEnded) return { kind: 'wait', for: 'run' };
  return conclusion === 'failure' && loss.recorded && !endedBefore(job, loss)
    ? { kind: 'rerun' }
    : { kind: 'prove' };
}

/**
 * Whether the job ended before its runner was asked to stop, so that the supervisor's record may be
 * about another job. The times are of two clocks, and the CI server may give up an unreachable
 * runner before its pod is asked to stop, so an early end alone does not mean that the job was not
 * lost.
 */
function endedBefore({ completedAt }: RerunCandidate, { stoppedAt }: LossFacts): boolean {
  return (
    stoppedAt !== undefined &&
    completedAt !== undefined &&
    completedAt + WHOLE_SECOND_MS <= stoppedAt
  );
}

/**
 * Decides by the evidence of the CI server. A job that is called cancelled although its runner did
 * not answer any more had been cancelled by someone: otherwise it would have failed. A cancel that
 * Holdfast has requested to end the job early does not count, unless someone else cancelled it, too.
 * @param job - `forceCancelled`: whether Holdfast may have force-cancelled the workflow run
 */
export function decideByEvidence(
  { conclusion, forceCancelled }: { conclusion?: string | undefined; forceCancelled: boolean },
  evidence: EndEvidence,
): Exclude<RerunDecision, { kind: 'prove' | 'wait' }> {
  if (evidence === 'shutdown') return { kind: 'rerun' };
  if (evidence === 'cancelled') return skip('cancelled');
  const isCancelled = conclusion === 'cancelled' || evidence === 'cancelled_by_credential';
  if (isCancelled) return forceCancelled ? { kind: 'rerun' } : skip('cancelled');
  return evidence === 'lost' ? { kind: 'rerun' } : skip('failed_itself');
}

/** CI servers report whole seconds, rounded down. */
const WHOLE_SECOND_MS = 1_000;

function skip(reason: RerunReason): Extract<RerunDecision, { kind: 'skip' }> {
  return { kind: 'skip', reason };
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

/**
 * Returns the delay until the next check of a lost job (ms). GitHub concludes the job of a runner
 * that was asked to stop after 15 to 26 s, and that of a runner that was killed after 9 m 36 s to
 * 9 m 45 s, so the checks are close together then.
 * @param sinceLossMs - time since the loss (ms)
 */
export function rerunCheckDelayMs(sinceLossMs: number): number {
  const isLikely =
    sinceLossMs < MINUTE_MS || (sinceLossMs > 9 * MINUTE_MS && sinceLossMs < 11 * MINUTE_MS);
  return isLikely ? 4 * SECOND_MS : 30 * SECOND_MS;
}

/** Time within which a CI server must conclude a lost job (ms). */
export const MAX_CONCLUSION_MS = 15 * MINUTE_MS;

/** Delay between two checks whether the other jobs of the workflow run have ended (ms). */
export const RUN_CHECK_MS = MINUTE_MS;
