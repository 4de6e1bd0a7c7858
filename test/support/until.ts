import { setTimeout as delay } from 'node:timers/promises';

/** By then what is waited for does not come, on whatever machine, in whatever hour; ms. */
export const HANGS_MS = 60_000;

/**
 * Awaits a condition of the world that has no event of its own.
 * @param explain - what is seen when it does not come true
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
    await nextLook(startedAt);
  }
}

/** Looks until the state is as wanted. @throws Error after `timeoutMs`, with what was seen last */
export async function untilSeen<T>(
  what: string,
  look: () => Promise<T>,
  fits: (seen: T) => boolean,
  timeoutMs = HANGS_MS,
): Promise<T> {
  const startedAt = Date.now();
  for (;;) {
    const seen = await look();
    if (fits(seen)) return seen;
    if (Date.now() - startedAt > timeoutMs)
      throw new Error(`not within ${timeoutMs} ms: ${what}; last seen: ${JSON.stringify(seen)}`);
    await nextLook(startedAt);
  }
}

/** The longer it takes, the less often: a look is a query or a request, and takes CPU from what is waited for. */
async function nextLook(startedAt: number): Promise<void> {
  await delay(Math.min(Math.max((Date.now() - startedAt) / 10, 20), 100));
}
