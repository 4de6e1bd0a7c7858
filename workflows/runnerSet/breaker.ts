/**
 * Circuit breaker of a set: it limits starts while runners of the current template do not come
 * online, or end soon after that without a job. Pure.
 */
import type { RunnerCause, RunnerEndedEvent } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** Health of the current template. Another template starts without failures. */
export interface SetHealth {
  /** Number of failed runners in a row. */
  readonly failures: number;
  /** Time of the last failure (ms since the epoch). Absent: there was none. */
  readonly failedAt?: number;
  /** Cause of the last failure. */
  readonly cause?: string;
  /**
   * Time at which the breaker opened (ms since the epoch). Since then, one runner at a time is
   * started.
   */
  readonly openedAt?: number;
  /** Number of runners that failed since the breaker opened. */
  readonly probes: number;
  /** Time before which no runner is started (ms since the epoch). */
  readonly nextTryAt?: number;
  /** Last failure. */
  readonly last?: FailedStart;
}

/** Runner that failed. */
export interface FailedStart {
  /** Workflow id. */
  readonly runner: string;
  readonly message: string;
  readonly cause?: RunnerCause;
  /** Time at which the set was notified (ms since the epoch). */
  readonly at: number;
}

/** Bounds of the delay between two starts after failures (ms). */
export interface RetryDelays {
  readonly initialRetryMs: number;
  readonly maxRetryMs: number;
}

/** Health of a template without failures. */
export const HEALTHY: SetHealth = { failures: 0, probes: 0 };

/** Number of failed runners in a row that opens the breaker. */
const BREAKER_THRESHOLD = 2;
/**
 * Causes that the template may be responsible for; one such failure may be chance. All other causes
 * (a quota, credentials, a webhook's denial) would affect the next runner as well.
 */
const TEMPLATE_CAUSES: ReadonlySet<string> = new Set([
  'never_registered',
  'image_pull',
  'unschedulable',
  'pending_timeout',
]);

/**
 * Fields of a runner's end that the breaker needs. Only a runner that failed or errored has a
 * message.
 */
type RunnerEnd = Pick<RunnerEndedEvent, 'outcome' | 'cause' | 'ranJob'> &
  Partial<Pick<RunnerEndedEvent, 'workflowId' | 'message'>>;

/** Facts that the set has recorded about a runner that has ended. */
export interface EndedRunner {
  /** Time of the start (ms since the epoch). */
  readonly startedAt: number;
  /** Whether the runner had been online for `minReady`. */
  readonly wasReady: boolean;
}

/**
 * Returns the health after a runner has ended. A runner that received a request to end changes
 * nothing, and neither does a runner that had been ready, because the set has already recorded
 * that.
 */
export function recordEnd(
  health: SetHealth,
  end: RunnerEnd,
  { startedAt, wasReady }: EndedRunner,
  now: number,
  pace: RetryDelays,
): SetHealth {
  const last = failedStart(end, now);
  // The CI server rejects the version of every runner of this image, but the same tag may have
  // another image later. So the set keeps starting runners, one at a time.
  if (end.cause === 'runner_deprecated')
    return recordFailure(health, end.cause, startedAt, now, pace, last);
  if (end.ranJob) return HEALTHY;
  if (wasReady || end.outcome === 'aborted' || end.outcome === 'succeeded') return health;
  return recordFailure(health, end.cause ?? 'failed', startedAt, now, pace, last);
}

/** Returns the failed start, or `undefined` if the runner did not report a reason. */
function failedStart(
  { workflowId: runner, message, cause }: RunnerEnd,
  at: number,
): FailedStart | undefined {
  return runner === undefined || message === undefined
    ? undefined
    : { runner, message, at, ...omitUndefined({ cause }) };
}

/** Returns the health after a runner has failed, or could not even be started. */
export function recordFailure(
  health: SetHealth,
  cause: string,
  startedAt: number,
  now: number,
  { initialRetryMs, maxRetryMs }: RetryDelays,
  last: FailedStart | undefined,
): SetHealth {
  const failures = health.failures + 1;
  // Runners that were starting when the breaker opened must not lengthen the delay, because they
  // are not new attempts.
  const isProbe = health.openedAt !== undefined && startedAt >= health.openedAt;
  const probes = health.probes + (isProbe ? 1 : 0);
  const open =
    health.openedAt !== undefined || failures >= BREAKER_THRESHOLD || cause === 'runner_deprecated';
  const waits = open || !TEMPLATE_CAUSES.has(cause);
  const nextTryAt =
    isProbe || health.nextTryAt === undefined
      ? now + Math.min(maxRetryMs, initialRetryMs * 2 ** probes)
      : health.nextTryAt;
  return {
    ...health,
    failures,
    failedAt: now,
    cause,
    probes,
    ...omitUndefined({ last }),
    ...(open ? { openedAt: health.openedAt ?? now } : {}),
    ...(waits ? { nextTryAt } : {}),
  };
}

/**
 * Returns the health after a runner of the template has become ready.
 * @param readyAt - time at which it became ready (ms since the epoch)
 */
export function recordReady(health: SetHealth, readyAt: number): SetHealth {
  return health.failedAt === undefined || readyAt < health.failedAt ? health : HEALTHY;
}

/** Number of runners that may be started now. */
export interface StartAllowance {
  readonly maxStarts: number;
  /** Reason for a limit. Absent if there is none. */
  readonly paused?: string;
  /** Time of the next allowed start (ms since the epoch), if it is known. */
  readonly until?: number;
}

/**
 * Returns how many runners may be started now.
 * @param unready - number of runners of this template that are not ready yet
 */
export function startAllowance(health: SetHealth, unready: number, now: number): StartAllowance {
  const waits = health.nextTryAt !== undefined && now < health.nextTryAt;
  if (health.openedAt === undefined && !waits) return { maxStarts: Number.POSITIVE_INFINITY };
  const what =
    health.openedAt === undefined
      ? (health.cause ?? 'failed')
      : `${health.cause ?? 'failed'} ×${health.failures}`;
  if (waits) return { maxStarts: 0, paused: what, until: health.nextTryAt ?? now };
  return { maxStarts: unready > 0 ? 0 : 1, paused: what };
}
