/**
 * Traces with two faults. All pairs of faults at once have too many states, so each pair is
 * explored by itself, for each kind of runner.
 */
import { shuffled } from '../shared/random.ts';
import { explore, FAULTS, SETUPS } from './explore.ts';
import { isKnown } from './knownViolations.ts';
import type { Setup } from './state.ts';
import type { Violation } from './trace.ts';
import type { WorkflowModel } from './workflowModel.ts';

/** All pairs of faults, including each fault with itself. */
export const PAIRS: readonly (readonly [string, string])[] = FAULTS.flatMap((one, index) =>
  FAULTS.slice(index).map((other) => [one, other] as const),
);

/** Which combinations of a pair of faults and a kind of runner to explore. */
export interface PairLimits {
  /** Kinds of runners. @default all */
  readonly setups?: readonly Setup[];
  /** Seed of a random order. @default the order of the model */
  readonly seed?: number;
  /** Index of the first combination, in that order. @default 0 */
  readonly from?: number;
  /** CPU time after which no further combination starts (s). @default none */
  readonly seconds?: number;
  /** Maximum number of states of one combination. @default none */
  readonly states?: number;
}

/** Result of one combination. */
export interface PairExploration {
  /** Index of this combination, and the number of all. */
  readonly index: number;
  readonly total: number;
  readonly setup: Setup;
  readonly faults: readonly [string, string];
  readonly states: number;
  readonly complete: boolean;
  /** Violations that are not known. */
  readonly violations: readonly Violation[];
  readonly workflow: WorkflowModel;
}

/** Explores one combination after the other. */
export function* explorePairs(limits: PairLimits = {}): Generator<PairExploration> {
  const { setups = SETUPS, seed, from = 0, seconds = Number.POSITIVE_INFINITY, states } = limits;
  const startedAt = process.cpuUsage();
  const inOrder = PAIRS.flatMap((faults) => setups.map((setup) => ({ setup, faults })));
  const all = seed === undefined ? inOrder : shuffled(inOrder, seed);
  for (const [index, { setup, faults }] of all.entries()) {
    if (index < from) continue;
    if (process.cpuUsage(startedAt).user / 1e6 >= seconds) return;
    const found = explore({
      setups: [setup],
      depth: 2,
      faults: new Set(faults),
      ...(states === undefined ? {} : { states }),
    });
    yield {
      index,
      total: all.length,
      setup,
      faults,
      states: found.states,
      complete: found.complete,
      violations: found.violations.filter((violation) => !isKnown(violation)),
      workflow: found.workflow,
    };
  }
}
