/** How fast signals may be sent to a set, from what Temporal says of its run. */
import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';

/** What Temporal says of the run of a set. */
export interface SetRunState {
  /** Events in its history. */
  readonly historyLength: number;
  /** How long its workflow task has waited for its end (ms). 0: there is none. */
  readonly silentMs: number;
}

export type SignalPace = 'normal' | 'slow' | 'refuse';

/** Signals to one set between two checks of it, at the normal pace. */
const SIGNALS_PER_CHECK = 20;
/** A set answers within milliseconds; the workers of a large fleet that restart, within seconds. */
const SILENT_MS = 5_000;
/** Temporal refuses the 10,001st signal of a run. A run continues as new after some 1,000 events. */
const MAX_HISTORY_LENGTH = 8_000;
/** More are not remembered: those that look at sets know as many. */
const MAX_SETS = 5_000;

/** From the start of one signal to a silent set to that of the next (ms). */
export const SLOW_PAUSE_MS = 2_000;
/** Events in one signal to a silent set at most. */
export const SLOW_MAX_EVENTS = 1_000;

/** The set does not answer, and has nearly as many signals as Temporal keeps for a run. */
export class SetBacklogError extends Error {
  override readonly name = 'SetBacklogError';
}

export function paceFor({ historyLength, silentMs }: SetRunState): SignalPace {
  if (historyLength >= MAX_HISTORY_LENGTH) return 'refuse';
  return silentMs >= SILENT_MS ? 'slow' : 'normal';
}

/** Knows the pace of each set. One request to Temporal tells it, for every 20 signals to a set that answers. */
export class SignalPaces {
  readonly #sets = new LRUCache<string, { pace: SignalPace; signals: number }>({ max: MAX_SETS });

  /** Counts a signal that is about to be sent. @returns whether {@link check} has to say its pace; else it is normal */
  isCheckDue(workflowId: string): boolean {
    const known = this.#of(workflowId);
    known.signals++;
    return known.pace !== 'normal' || known.signals >= SIGNALS_PER_CHECK;
  }

  /** The pace of now. A check that fails changes nothing: the signal itself meets the same failure, and says so. */
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
