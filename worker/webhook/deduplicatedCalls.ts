import { LRUCache } from 'lru-cache';

/**
 * Does once what has a key: who comes with the same key while it is being done, or after it was, shares its result. What did not succeed is
 * forgotten, so that its repetition is tried.
 */
export class DeduplicatedCalls<T> {
  readonly #done: LRUCache<string, Promise<T>>;
  readonly #succeeded: (result: T) => boolean;

  /** @param max - keys that are remembered; those that were used last stay */
  constructor(max: number, succeeded: (result: T) => boolean) {
    this.#done = new LRUCache({ max });
    this.#succeeded = succeeded;
  }

  /** @param run - never throws */
  async run(key: string, run: () => Promise<T>): Promise<{ result: T; repeated: boolean }> {
    const known = this.#done.get(key);
    if (known !== undefined) return { result: await known, repeated: true };
    // Nothing may be awaited since the look: two that come together would both find nothing.
    const running = run();
    this.#done.set(key, running);
    const result = await running;
    if (!this.#succeeded(result) && this.#done.peek(key) === running) this.#done.delete(key);
    return { result, repeated: false };
  }
}
