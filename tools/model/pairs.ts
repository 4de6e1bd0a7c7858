/** Stories with two mishaps of all kinds of runners, a pair of mishaps at a time: all two together are too many states at once. */
import { explore, PAIRS, SETUPS, type Wrong } from './explore.ts';
import { isKnown } from './known.ts';
import type { Mind } from './mind.ts';
import type { Setup } from './state.ts';

export interface PairLimits {
  readonly setups?: readonly Setup[];
  /** Chooses the order of the pairs. @default that of the model */
  readonly seed?: number;
  /** CPU time after which no further pair is begun (s). @default none */
  readonly seconds?: number;
  /** States of one pair, for each kind of runner. @default none */
  readonly states?: number;
}

/** A pair of one kind of runner, and what is wrong with it that is not known. */
export interface PairFinding {
  readonly setup: Setup;
  readonly mishaps: readonly [string, string];
  readonly states: number;
  readonly complete: boolean;
  readonly wrongs: readonly Wrong[];
  readonly mind: Mind;
}

/** Explores pair after pair, each of every kind of runner. */
export function* explorePairs(limits: PairLimits = {}): Generator<PairFinding> {
  const { setups = SETUPS, seed, seconds = Number.POSITIVE_INFINITY, states } = limits;
  const startedAt = process.cpuUsage();
  const all = PAIRS.flatMap((mishaps) => setups.map((setup) => ({ setup, mishaps })));
  for (const { setup, mishaps } of seed === undefined ? all : shuffled(all, seed)) {
    if (process.cpuUsage(startedAt).user / 1e6 >= seconds) return;
    const found = explore({
      setups: [setup],
      depth: 2,
      mishaps: new Set(mishaps),
      ...(states === undefined ? {} : { states }),
    });
    const wrongs = found.wrongs.filter((wrong) => !isKnown(wrong));
    yield {
      setup,
      mishaps,
      states: found.states,
      complete: found.complete,
      wrongs,
      mind: found.mind,
    };
  }
}

/** A permutation that depends on the seed alone (mulberry32). */
function shuffled<T>(list: readonly T[], seed: number): T[] {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return list
    .map((each) => [next(), each] as const)
    .toSorted(([one], [other]) => one - other)
    .map(([, each]) => each);
}
