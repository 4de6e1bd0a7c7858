import { setTimeout as delay } from 'node:timers/promises';

/**
 * Awaits a condition of the world that has no event of its own.
 * @param explain - what is seen when it does not come true
 * @throws Error after `timeoutMs`
 */
export async function until(what: string, holds: () => Promise<boolean> | boolean, explain: () => string = () => '', timeoutMs = 30_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      if (await holds()) return;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}: ${explain()}`, { cause: lastError });
    await delay(20);
  }
}

/** Looks until the state is as wanted. @throws Error after `timeoutMs`, with what was seen last */
export async function untilSeen<T>(what: string, look: () => Promise<T>, fits: (seen: T) => boolean, timeoutMs = 20_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (fits(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}; last seen: ${JSON.stringify(seen)}`);
    await delay(25);
  }
}
