/** A stream of numbers that a failed run can be repeated with (Park and Miller). */
export function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => (state = (state * 48_271) % 2_147_483_647) % below;
}

/** Returns the seed of the environment, or a new one. It is printed, to reproduce a failure. */
export function randomSeed(): number {
  const seed =
    Number(process.env['HOLDFAST_TEST_SEED'] ?? 0) || 1 + Math.floor(Math.random() * 2_000_000_000);
  process.stderr.write(`seed ${seed} (HOLDFAST_TEST_SEED repeats it)\n`);
  return seed;
}
