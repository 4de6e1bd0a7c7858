/** Random choices that a seed repeats. */

/** Returns a generator of numbers from 0 to below 1 (mulberry32, public domain). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a permutation that depends on the seed alone. */
export function shuffled<T>(list: readonly T[], seed: number): T[] {
  const next = seededRandom(seed);
  return list
    .map((each) => [next(), each] as const)
    .toSorted(([one], [other]) => one - other)
    .map(([, each]) => each);
}
