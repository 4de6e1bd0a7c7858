import { pMapSettled } from 'p-map';

/** Requests to Temporal under way at once for one set. */
const AT_ONCE = 10;

/** Does all of it, some at a time: one that fails keeps no other from being done. @throws the first failure, when nothing is under way any more */
export async function forEachLimited<T>(
  items: readonly T[],
  run: (item: T) => Promise<void>,
): Promise<void> {
  for (const result of await pMapSettled(items, run, { concurrency: AT_ONCE }))
    if (result.status === 'rejected') throw result.reason;
}
