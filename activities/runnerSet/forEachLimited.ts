import { pMapSettled } from 'p-map';

/** Concurrent requests to Temporal for one set. */
const AT_ONCE = 10;

/**
 * Calls the function for every item with limited concurrency. A failure does not stop the other
 * calls.
 * @throws the first failure, after all calls have ended
 */
export async function forEachLimited<T>(
  items: readonly T[],
  run: (item: T) => Promise<void>,
): Promise<void> {
  for (const result of await pMapSettled(items, run, { concurrency: AT_ONCE }))
    if (result.status === 'rejected') throw result.reason;
}
