/** Computes the duration of each part of a runner's stop, and the grace period of the pod. Pure. */
import { STOP_TIMEOUTS, type StopInput } from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { toMilliseconds } from '../domain/duration.ts';
import type { ScopeTimeouts } from './timeoutPolicy.ts';

/** Durations of the parts of a stop, which add up. */
export interface GraceBudget {
  readonly drainTimeoutMs: number;
  readonly signalTimeoutMs: number;
  readonly cleanupTimeoutMs: number;
  /** terminationGracePeriodSeconds of the pod. */
  readonly podSeconds: number;
}

/** Time between the end of the supervisor's budget and the kubelet's SIGKILL (s). */
const MARGIN_SECONDS = 5;
const MIN_SECONDS = 30;
/** Time for a step's last records and its upload, if its grace period is not shorter (s). */
const MIN_UPLOAD_SECONDS = 10;

/**
 * Returns the durations of a stop.
 * @param stop - valid: with `gracePeriod`, or with `signalTimeout` and `cleanupTimeout`, or with
 * neither
 * @param byScope - settings in the worker's configuration
 */
export function graceBudget(
  stop: StopInput,
  { signalTimeout, cleanupTimeout }: Pick<ScopeTimeouts, 'signalTimeout' | 'cleanupTimeout'>,
): GraceBudget {
  const { signals: _signals, target: _to, cleanupCommand: _command, ...asked } = stop;
  const {
    gracePeriodMs,
    drainTimeoutMs = 0,
    ...parts
  } = toMilliseconds({
    ...STOP_TIMEOUTS,
    ...omitUndefined({ signalTimeout, cleanupTimeout }),
    ...asked,
  });
  if (gracePeriodMs !== undefined) return stepLedger(gracePeriodMs, drainTimeoutMs);
  const wholeMs = drainTimeoutMs + parts.signalTimeoutMs + parts.cleanupTimeoutMs;
  return {
    drainTimeoutMs,
    ...parts,
    podSeconds: Math.max(MIN_SECONDS, Math.ceil(wholeMs / 1_000) + MARGIN_SECONDS),
  };
}

/**
 * Returns the durations of a step's stop. The pod gets a quarter more than the step, at least 10 s
 * more, but at most twice as much: half for the last records, and half to upload the artifacts
 * (15 s: 25 s, 100 s: 125 s).
 */
function stepLedger(gracePeriodMs: number, drainTimeoutMs: number): GraceBudget {
  const seconds = gracePeriodMs / 1_000;
  const uploadSeconds = Math.max(seconds / 4, Math.min(seconds, MIN_UPLOAD_SECONDS), 2);
  const stopSeconds = Math.ceil(seconds + uploadSeconds);
  return {
    drainTimeoutMs,
    signalTimeoutMs: gracePeriodMs,
    cleanupTimeoutMs: Math.floor((stopSeconds * 1_000 - gracePeriodMs) / 2),
    podSeconds: stopSeconds + Math.ceil(drainTimeoutMs / 1_000),
  };
}
