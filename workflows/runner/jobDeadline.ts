/** Deadline of the job of a runner, and the limits of its age and its job time. */
import type { AdmittedRunner } from '../../core/activities/index.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import type { CurrentRunner } from './carriedState.ts';

/**
 * Time after which a command that reached its timeout is stopped by the workflow, if the supervisor
 * has not ended it (ms).
 */
const BACKSTOP_MS = 60_000;

/** State of a runner workflow that its deadlines depend on. */
export interface TimedRunner {
  readonly runner: CurrentRunner;
  readonly spec: AdmittedRunner;
  /** Start of the first run (ms since the epoch). */
  readonly createdAtMs: number;
  /** Time that previous attempts have run a plain command (ms). */
  usedJobMs: number;
}

/**
 * Returns the time added to a plain command's deadline (ms). With the supervisor, the pod enforces the
 * command's timeout, and the workflow's later deadline is only a backstop.
 */
export function backstopMs(state: TimedRunner): number {
  const { runner, spec } = state;
  return spec.scope === undefined && runner.pod?.online !== undefined
    ? spec.pod.terminationGracePeriodSeconds * 1_000 +
        (spec.pod.storage?.timeoutMs ?? 0) +
        BACKSTOP_MS
    : 0;
}

/**
 * Returns the time at which a workflow with `onEviction: resume` reaches its maximum age, however
 * often its pod was lost (ms since the epoch). Infinity for all other workflows.
 */
export function maxDurationDeadlineMs(state: TimedRunner): number {
  return state.spec.onEviction === 'resume'
    ? state.createdAtMs + state.spec.timeouts.maxAgeMs
    : Number.POSITIVE_INFINITY;
}

/**
 * Returns the maximum time that a job of the current runner may take (ms). A plain command is the
 * same job in each attempt, so the cap applies to the sum of all attempts.
 */
export function remainingJobMs(state: TimedRunner): number {
  return Math.max(0, state.spec.pod.jobTimeoutCapMs - state.usedJobMs);
}

/** Adds the time of a plain command's completed attempt to the used job time. */
export function countJobTime(state: TimedRunner): void {
  const { busySince } = state.runner;
  if (state.spec.scope === undefined && busySince !== undefined)
    state.usedJobMs += Date.now() - busySince;
}

/** Returns the latest time to which the job's deadline may be extended (ms since the epoch). */
export function latestDeadlineMs(state: TimedRunner): number {
  return Math.min(
    (state.runner.busySince ?? Number.NaN) + remainingJobMs(state),
    maxDurationDeadlineMs(state),
  );
}

/**
 * Returns the request to stop a runner that has reached its job's deadline. A runner that did not
 * exit after its job was not needed any more: it is aborted only if its job was cancelled.
 */
export function deadlineCancellation(state: TimedRunner): Cancellation {
  const { jobEndedAt, jobConclusion } = state.runner;
  if (jobEndedAt === undefined)
    return { mode: 'stop', reason: timeoutReason(state), by: 'run_timeout' };
  const since = formatDuration(Date.now() - jobEndedAt);
  return {
    mode: 'stop',
    reason: `its job ended ${since} ago, and it did not exit (timeouts.exit)`,
    by: jobConclusion === 'cancelled' ? 'cancelled' : 'drain',
  };
}

function timeoutReason(state: TimedRunner): string {
  if (Date.now() >= maxDurationDeadlineMs(state))
    return `it is ${formatDuration(state.spec.timeouts.maxAgeMs)} old (timeouts.maxAge), in attempt ${state.runner.identity.attempt}`;
  const { busySince } = state.runner;
  return busySince === undefined
    ? `the CI server reported it as busy for ${formatDuration(state.spec.timeouts.jobTimeoutMs)}`
    : `its job ran for ${formatDuration(Date.now() - busySince)}`;
}
