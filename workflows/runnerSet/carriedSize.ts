/** Limits the size of the state that a set carries over with continue-as-new. */
import type { RunnerSetInput } from '../../core/contract/index.ts';
import type { CarriedSet } from './carriedState.ts';
import type { SetState } from './state.ts';

/**
 * Maximum size of the arguments of the next run (bytes of JSON). Temporal fails a workflow that
 * continues with more than 2 MiB; the rest is for encryption.
 */
const MAX_CARRIED_BYTES = 1.75 * 1024 * 1024;

/** Arguments of the next run of a set. */
export type NextRunArgs = [input: RunnerSetInput, carried: CarriedSet];

/** Arguments of the next run, with their size and what was dropped. */
export interface CarriedArgs {
  readonly args: NextRunArgs;
  /** Size as JSON (bytes). */
  readonly bytes: number;
  /** Number of dropped records of each kind. Absent: nothing was dropped. */
  readonly dropped?: Readonly<Record<'completed' | 'traces' | 'forwarded' | 'queued', number>>;
}

/**
 * Returns the arguments of the next run, and changes the state so that they fit. It first drops
 * what costs least: completed jobs, then traces and events for other sets, and finally queued jobs,
 * which the next check of the CI server finds again.
 * @param commandsDone - IDs of the last executed commands
 * @param maxBytes - maximum size of the arguments as JSON (bytes)
 */
export function carryWithinLimit(
  state: SetState,
  commandsDone: readonly string[],
  maxBytes = MAX_CARRIED_BYTES,
): CarriedArgs {
  const before = recordsOf(state);
  for (;;) {
    const args: NextRunArgs = [state.currentDeclaration(), { ...state.carry(), commandsDone }];
    const bytes = args.reduce((sum, each) => sum + sizeOf(each), 0);
    if (bytes <= maxBytes || !dropSome(state)) {
      const now = recordsOf(state);
      const dropped = {
        completed: before.completed - now.completed,
        traces: before.traces - now.traces,
        forwarded: before.forwarded - now.forwarded,
        queued: before.active - now.active,
      };
      return Object.values(dropped).some((count) => count > 0)
        ? { args, bytes, dropped }
        : { args, bytes };
    }
  }
}

/**
 * Share of the jobs that is dropped at a time: a quarter. Each step requires a new encoding of all
 * jobs.
 */
const PART = 4;
/** Number of jobs below which all are dropped in one step. */
const FEW = 500;

/**
 * Drops some of the records.
 *
 * @returns whether there was something to drop
 */
function dropSome(state: SetState): boolean {
  const { completed, traces, forwarded, active } = recordsOf(state);
  if (completed > 0)
    state.jobs.forgetCompleted(completed < FEW ? completed : Math.ceil(completed / PART));
  else if (traces > 0) state.jobs.traces.clear();
  else if (forwarded > 0) state.passing.clear();
  else {
    state.jobs.forgetQueued(Math.max(FEW, Math.ceil(active / PART)));
    // The next run checks the CI server immediately.
    delete state.facts.queueCheckStartedAt;
    return state.jobs.size.active < active;
  }
  return true;
}

interface Records {
  readonly completed: number;
  readonly traces: number;
  readonly forwarded: number;
  readonly active: number;
}

function recordsOf({ jobs, passing }: SetState): Records {
  const { active, completed } = jobs.size;
  return { active, completed, traces: jobs.traces.size, forwarded: passing.carry().length };
}

const sizeOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length;
