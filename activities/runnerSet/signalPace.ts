/** Limits the rate of signals to a set, by the state of its run in Temporal. */
import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';

/** State of the run of a set, as Temporal reports it. */
export interface SetRunState {
  /** Events in its history. */
  readonly historyLength: number;
  /** Age of its pending workflow task (ms), 0 if there is none. */
  readonly silentMs: number;
}

/**
 * Pace of signals to a set. With `refuse`, no signal may be sent until the set has continued as
 * new.
 */
export type SignalPace = 'normal' | 'slow' | 'refuse';

/** Signals to one set between two checks of it, at the normal pace. */
const SIGNALS_PER_CHECK = 20;
/**
 * Age of a workflow task from which a set counts as slow (ms). A set completes its tasks within
 * milliseconds, and within seconds while the workers of a large fleet restart.
 */
const SILENT_MS = 5_000;
/**
 * History length from which signals are rejected. Temporal rejects the 10,001st signal of a run,
 * and a run continues as new after about 1,000 events.
 */
const MAX_HISTORY_LENGTH = 8_000;
/** Maximum number of sets remembered, as many as are listed elsewhere. */
const MAX_SETS = 5_000;

/** Minimum time between the starts of two signals to a slow set (ms). */
export const SLOW_PAUSE_MS = 2_000;
/** Maximum events per signal to a slow set. */
export const SLOW_MAX_EVENTS = 1_000;

/**
 * The set makes no progress and has nearly as many history events as Temporal permits for a run.
 */
export class SetBacklogError extends Error {
  override readonly name = 'SetBacklogError';
}

/**
 * Returns the pace for the state of a run: `refuse` from 8,000 history events, `slow` after 5
 * seconds without progress.
 */
export function paceFor({ historyLength, silentMs }: SetRunState): SignalPace {
  if (historyLength >= MAX_HISTORY_LENGTH) return 'refuse';
  return silentMs >= SILENT_MS ? 'slow' : 'normal';
}

/** Tracks the pace of each set. A set at the normal pace is checked once for every 20 signals. */
export class SignalPaces {
  readonly #sets = new LRUCache<string, { pace: SignalPace; signals: number }>({ max: MAX_SETS });

  /**
   * Counts a signal before it is sent.
   * @returns whether {@link check} must be called for the pace. Otherwise the pace is normal
   */
  isCheckDue(workflowId: string): boolean {
    const known = this.#of(workflowId);
    known.signals++;
    return known.pace !== 'normal' || known.signals >= SIGNALS_PER_CHECK;
  }

  /**
   * Returns the current pace. A failed check keeps the previous one, because the signal itself will
   * fail and report the error.
   */
  async check(client: Client, workflowId: string): Promise<SignalPace> {
    const known = this.#of(workflowId);
    known.signals = 0;
    try {
      known.pace = paceFor(await describeSet(client, workflowId));
    } catch {
      return known.pace;
    }
    return known.pace;
  }

  #of(workflowId: string): { pace: SignalPace; signals: number } {
    const known = this.#sets.get(workflowId) ?? { pace: 'normal', signals: 0 };
    this.#sets.set(workflowId, known);
    return known;
  }
}

async function describeSet(client: Client, workflowId: string): Promise<SetRunState> {
  const { historyLength, raw } = await client.workflow.getHandle(workflowId).describe();
  const { originalScheduledTime: since } = raw.pendingWorkflowTask ?? {};
  const sinceMs = since === null || since === undefined ? undefined : Number(since.seconds) * 1_000;
  return {
    historyLength,
    silentMs: sinceMs === undefined ? 0 : Math.max(0, Date.now() - sinceMs),
  };
}
