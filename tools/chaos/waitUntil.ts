import { setTimeout as delay } from 'node:timers/promises';

const CHECK_INTERVAL_MS = 250;

/**
 * Checks the condition until it holds. A check that fails is repeated.
 * @throws Error after `withinMs`
 */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  withinMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (let cause: unknown; ; await delay(CHECK_INTERVAL_MS)) {
    try {
      if (await holds()) return;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline)
      throw new Error(`waited ${Math.round(withinMs / 1_000)} s without success for ${what}`, {
        cause,
      });
  }
}
