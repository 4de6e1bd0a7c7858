/** Cancel requests of people and policies, and how two of them combine. Pure. */
import { stripControlCharacters, truncate } from './displayText.ts';
import type { CancelMode, CancelRequest, RunnerCause } from '../contract/index.ts';
import type { StopReason } from './pod.ts';

/** An accepted request to end a runner early. */
export interface Cancellation {
  readonly mode: CancelMode;
  readonly reason: string;
  /**
   * Cause of the end. `drain` (the update, or `retire`) is a planned retirement; every other cause
   * aborts the runner.
   */
  readonly by:
    'drain' | Extract<RunnerCause, 'cancelled' | 'superseded' | 'idle_timeout' | 'run_timeout'>;
}

/** Stop reason that the supervisor gets for each cause. */
export const STOP_REASON_BY_CAUSE: Readonly<Record<Cancellation['by'], StopReason>> = {
  cancelled: 'cancelled',
  superseded: 'superseded',
  run_timeout: 'timeout',
  idle_timeout: 'drained',
  drain: 'drained',
};

const RANK: Readonly<Record<CancelMode, number>> = { drain: 1, stop: 2, force: 3 };
const MAX_REASON = 500;

/**
 * Combines two requests. A stronger mode replaces the current request. A weaker or equal one
 * changes nothing, so the first reason for the strongest mode stays.
 */
export function upgradeCancellation(
  current: Cancellation | undefined,
  wanted: Cancellation,
): Cancellation {
  if (current === undefined) return wanted;
  return RANK[wanted.mode] > RANK[current.mode] ? wanted : current;
}

/**
 * Parses the body of the `cancel` signal. A cancellation must not be lost because of a typo, and
 * must not be stronger than intended. So an unknown mode becomes a drain, whose reason contains the
 * unknown mode. Without a mode, it is a stop.
 */
export function parseCancelRequest(body: CancelRequest | string | undefined): Cancellation {
  if (typeof body === 'string') return { mode: 'stop', reason: clean(body), by: 'cancelled' };
  const mode: unknown = body?.mode ?? 'stop';
  const reason = parseReason(body);
  if (!isCancelMode(mode))
    return {
      mode: 'drain',
      reason: clean(
        `unknown cancel mode ${JSON.stringify(mode)}, so it drains${reason === '' ? '' : `: ${reason}`}`,
      ),
      by: 'cancelled',
    };
  return {
    mode,
    reason,
    by: mode === 'drain' && body?.planned === true ? 'drain' : readBy(body?.stopReason),
  };
}

const isCancelMode = (mode: unknown): mode is CancelMode =>
  mode === 'drain' || mode === 'stop' || mode === 'force';

function readBy(by: CancelRequest['stopReason']): Cancellation['by'] {
  if (by === 'timeout') return 'run_timeout';
  return by === 'superseded' ? 'superseded' : 'cancelled';
}

/** Parses the body of the update `drain`. */
export function parseDrainRequest(body: { reason?: string } | undefined): Cancellation {
  return { mode: 'drain', reason: parseReason(body), by: 'drain' };
}

/** Returns the reason in a body, or `''`. */
export function parseReason(body: { reason?: string } | undefined): string {
  return clean(typeof body?.reason === 'string' ? body.reason : '');
}

/** Cleans a reason, which comes from outside and is shown to people. */
const clean = (reason: string): string => truncate(stripControlCharacters(reason), MAX_REASON);
