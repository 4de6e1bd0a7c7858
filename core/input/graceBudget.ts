/** How long each part of a runner's stop may take, and the pod's grace that follows from it. Pure. */
import { STOP_TIMEOUTS, type StopInput } from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import { toMilliseconds } from '../domain/duration.ts';
import type { ScopeTimeouts } from './timeoutPolicy.ts';

/** All of it is additive. */
export interface GraceBudget {
  readonly drainTimeoutMs: number;
  readonly signalTimeoutMs: number;
  readonly cleanupTimeoutMs: number;
  /** The pod's terminationGracePeriodSeconds. */
  readonly podSeconds: number;
}

/** Between the end of the supervisor's budget and the kubelet's SIGKILL. */
const MARGIN_SECONDS = 5;
const MIN_SECONDS = 30;
/** The same of a step, whose grace is short as a rule. */
const STEP_MARGIN_MS = 1_000;

/** @param stop - valid, and either with `gracePeriod` or without @param byScope - what the worker's config sets */
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

/** Of a step: 80 % of the pod's grace to make artifacts, 20 % to upload them (15 s: 18 s, 100 s: 125 s). */
function stepLedger(gracePeriodMs: number, drainTimeoutMs: number): GraceBudget {
  const seconds = gracePeriodMs / 1_000;
  const stopSeconds = Math.max(Math.floor(1.25 * seconds), Math.ceil(seconds + 2));
  return {
    drainTimeoutMs,
    signalTimeoutMs: gracePeriodMs,
    cleanupTimeoutMs: stopSeconds * 1_000 - gracePeriodMs - STEP_MARGIN_MS,
    podSeconds: stopSeconds + Math.ceil(drainTimeoutMs / 1_000),
  };
}
