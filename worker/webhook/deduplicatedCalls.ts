import { LRUCache } from 'lru-cache';

/**
 * Runs each call with a key once. A call with the same key shares the result, during the first call
 * and afterwards. A failed call is forgotten, so a repetition runs again.
 */
export class DeduplicatedCalls<T> {
  readonly #done: LRUCache<string, Promise<T>>;
  readonly #succeeded: (result: T) => boolean;

  /**
   * Creates an empty cache.
   * @param max - maximum number of keys; the least recently used one is dropped
   */
  constructor(max: number, succeeded: (result: T) => boolean) {
    this.#done = new LRUCache({ max });
    this.#succeeded = succeeded;
  }

  /**
   * Runs a call, or returns the result of an earlier one.
   * @param run - never throws
   */
  async run(key: string, run: () => Promise<T>): Promise<{ result: T; repeated: boolean }> {
    const known = this.#done.get(key);
    if (known !== undefined) return { result: await known, repeated: true };
    // Do not await between the lookup and this: two concurrent calls would both find nothing.
    const running = run();
    this.#done.set(key, running);
    const result = await running;
    if (!this.#succeeded(result) && this.#done.peek(key) === running) this.#done.delete(key);
    return { result, repeated: false };
  }
}
