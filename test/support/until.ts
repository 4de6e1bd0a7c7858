import { setTimeout as delay } from 'node:timers/promises';

/** Time after which a condition counts as never met, on any machine and under any load (ms). */
export const HANGS_MS = 60_000;

/**
 * Waits for a condition that has no event.
 * @param explain - describes the state if the condition is not met
 * @throws Error after `timeoutMs`
 */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  explain: () => string = () => '',
  timeoutMs = HANGS_MS,
): Promise<void> {
  const startedAt = Date.now();
  let lastError: unknown;
  for (;;) {
    try {
      if (await holds()) return;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() - startedAt > timeoutMs)
      throw new Error(`waited ${timeoutMs} ms for ${what}: ${explain()}`, { cause: lastError });
    await nextPoll(startedAt);
  }
}

/**
 * Polls until the state is as expected. A failed look is repeated.
 * @throws Error after `timeoutMs`, with the last state, and the error of the last look as its cause
 */
export async function untilSeen<T>(
  what: string,
  look: () => Promise<T>,
  fits: (seen: T) => boolean,
  timeoutMs = HANGS_MS,
): Promise<T> {
  let seen: T | undefined;
  await until(
    what,
    async () => fits((seen = await look())),
    () => `last seen: ${JSON.stringify(seen)}`,
    timeoutMs,
  );
  return seen as T;
}

/** Waits for the next poll. The interval grows, because a poll takes CPU from what is awaited. */
async function nextPoll(startedAt: number): Promise<void> {
  await delay(Math.min(Math.max((Date.now() - startedAt) / 10, 20), 100));
}
