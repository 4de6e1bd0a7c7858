import { afterAll, beforeAll, test } from '@jest/globals';

const OPENING_MS = 120_000;

/** A test in a world that it shares with others. */
export type Scenario<World> = (world: World) => Promise<void>;

/**
 * Runs tests that mostly wait: all start at once in one world, and each is reported by its own
 * name. (`test.concurrent` does not wait for the `beforeAll` of a `describe`.)
 * @param afterwards - tests of what is left after all scenarios
 */
export function together<World extends { close(): Promise<void> }>(
  open: () => Promise<World>,
  scenarios: Readonly<Record<string, Scenario<World>>>,
  options: { timeoutMs?: number; afterwards?: Readonly<Record<string, Scenario<World>>> } = {},
): void {
  const { timeoutMs = 420_000, afterwards = {} } = options;
  let world: World | undefined;
  const played = new Map<string, Promise<PromiseSettledResult<void>>>();

  beforeAll(async () => {
    const opened = (world = await open());
    for (const [name, scenario] of Object.entries(scenarios))
      played.set(
        name,
        Promise.allSettled([within(timeoutMs, scenario(opened))]).then(([result]) => result),
      );
  }, OPENING_MS);
  afterAll(async () => await world?.close(), OPENING_MS);

  for (const name of Object.keys(scenarios)) {
    test(
      name,
      async () => {
        const result = await played.get(name);
        if (result?.status !== 'fulfilled')
          throw result?.reason ?? new Error('the world did not open');
      },
      timeoutMs + 1_000,
    );
  }
  for (const [name, scenario] of Object.entries(afterwards)) {
    test(
      name,
      async () => {
        if (world === undefined) throw new Error('the world did not open');
        await Promise.all(played.values());
        await scenario(world);
      },
      timeoutMs,
    );
  }
}

/**
 * Limits the time of a scenario. All start at once, so that tests that hang do not add up their
 * times.
 */
async function within<T>(ms: number, playing: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not over after ${ms / 1_000} s`)), ms);
  });
  return await Promise.race([playing, over]).finally(() => clearTimeout(timer));
}
