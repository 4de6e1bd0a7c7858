/** Record of one runner of a set. Pure. */
import type { SetRunnerStatus } from '../../core/contract/index.ts';

/** Runner with the state that its set knows. */
export interface SetRunner {
  readonly workflowId: string;
  /** Hash of the template that the runner was started with. */
  readonly templateHash: string;
  /** Time of the start (ms since the epoch). */
  readonly startedAt: number;
  readonly slot?: number;
  /** Whether the runner ends by itself after one job. */
  readonly ephemeral: boolean;
  state: SetRunnerStatus['state'];
  /**
   * Time since which the runner is known to be busy (ms since the epoch). Absent while it is not.
   */
  busySince?: number;
  /**
   * Time since which the runner is known to be online (ms since the epoch). Absent until it is.
   */
  onlineSince?: number;
  runnerName?: string;
  /** Whether a job event has named the runner. */
  jobReported: boolean;
  /** Whether the runner's pod was seen with a node. Only observed with `capacity: observed`. */
  hasNode?: true;
  /** Reason why the runner has no node, and the time since which (ms since the epoch). */
  noNode?: { readonly since: number; readonly reason: string };
  /** Whether the runner is to be drained because it has no node. */
  withdrawn?: true;
  /**
   * Drain requests that the runner has not confirmed yet: the time of the last one (ms since the
   * epoch) and their number.
   */
  drainRequested?: { readonly at: number; readonly times: number };
}

/** Whether the runner was withdrawn and has never been online. Its pod has no node. */
export function isWithdrawn({
  withdrawn,
  onlineSince,
}: Pick<SetRunner, 'withdrawn' | 'onlineSince'>): boolean {
  return withdrawn === true && onlineSince === undefined;
}

/**
 * Template of a runner whose template is unknown: a set of this name was lost and created again.
 * Such a runner counts as having an old template.
 */
export const UNKNOWN_GENERATION = ['unknown', true] as const;

/**
 * Returns the time at which a runner counts as ready (ms since the epoch), or Infinity while it is
 * not online.
 */
export function readyTime(
  { state, onlineSince, jobReported }: SetRunner,
  minReadyMs: number,
): number {
  if (onlineSince === undefined || (state !== 'idle' && state !== 'busy'))
    return Number.POSITIVE_INFINITY;
  return state === 'busy' || jobReported ? onlineSince : onlineSince + minReadyMs;
}
