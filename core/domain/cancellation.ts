/** Cancel requests: what people and policies may ask for, and how two of them combine. Pure. */
import { stripControlCharacters, truncate } from './displayText.ts';
import type { CancelMode, CancelRequest, RunnerCause } from '../contract/index.ts';
import type { StopReason } from './pod.ts';

/** An accepted request to end the life early. */
export interface Cancellation {
  readonly mode: CancelMode;
  readonly reason: string;
  /** `drain` (the update, or `retire`) retires a runner in good order; everything else aborts it with this cause. */
  readonly by:
    'drain' | Extract<RunnerCause, 'cancelled' | 'superseded' | 'idle_timeout' | 'run_timeout'>;
}

/** What the one who is stopped for it is told. */
export const STOP_REASON_BY_CAUSE: Readonly<Record<Cancellation['by'], StopReason>> = {
  cancelled: 'cancelled',
  superseded: 'superseded',
  run_timeout: 'timeout',
  idle_timeout: 'drained',
  drain: 'drained',
};

const RANK: Readonly<Record<CancelMode, number>> = { drain: 1, stop: 2, force: 3 };
const MAX_REASON = 500;

/** A stronger request upgrades; a weaker or an equal one changes nothing. The first reason for the strongest mode stands. */
export function upgradeCancellation(
  current: Cancellation | undefined,
  wanted: Cancellation,
): Cancellation {
  if (current === undefined) return wanted;
  return RANK[wanted.mode] > RANK[current.mode] ? wanted : current;
}

/**
 * Reads the body of the `cancel` signal. A cancel must not be lost to a typo, and must not be
 * stronger than it was meant: an unknown mode is a drain, whose reason says so. Without a mode, it
 * is a stop.
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
  return by === 'timeout' ? 'run_timeout' : by === 'superseded' ? 'superseded' : 'cancelled';
}

/** Reads the body of the update `drain`. */
export function parseDrainRequest(body: { reason?: string } | undefined): Cancellation {
  return { mode: 'drain', reason: parseReason(body), by: 'drain' };
}

/** The reason that a body gives, or `''`. */
export function parseReason(body: { reason?: string } | undefined): string {
  return clean(typeof body?.reason === 'string' ? body.reason : '');
}

/** A reason comes from outside and is shown to people. */
const clean = (reason: string): string => truncate(stripControlCharacters(reason), MAX_REASON);
