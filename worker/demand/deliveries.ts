/** Deliveries that this process has passed on: a repeated one need not be. */

/**
 * Remembers the last so many. A delivery that arrives again while the first is under way shares its fate; one that failed is
 * forgotten, so that its repetition is tried. What another replica has passed on is not known here: the sets bear repetitions.
 */
export class DemandDeliveries<T> {
  readonly #capacity: number;
  readonly #known = new Map<string, Promise<T>>();

  constructor(capacity = 10_000) {
    this.#capacity = capacity;
  }

  /**
   * @param key - of the delivery; `undefined`: cannot be known again
   * @param keep - whether the result makes a repetition needless
   * @returns its result, and whether that is from an earlier time
   */
  async once(key: string | undefined, pass: () => Promise<T>, keep: (result: T) => boolean): Promise<{ result: T; repeated: boolean }> {
    const known = key === undefined ? undefined : this.#known.get(key);
    if (known) return { result: await known, repeated: true };
    const passing = pass();
    if (key === undefined) return { result: await passing, repeated: false };
    this.#known.set(key, passing);
    if (this.#known.size > this.#capacity) this.#known.delete(this.#known.keys().next().value ?? '');
    let kept = false;
    try {
      const result = await passing;
      kept = keep(result);
      return { result, repeated: false };
    } finally {
      if (!kept && this.#known.get(key) === passing) this.#known.delete(key);
    }
  }
}
