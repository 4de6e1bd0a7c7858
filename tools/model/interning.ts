/** Interning of objects, so that a state refers to them by number, and memoization. */

/** A table that gives equal objects the same number. */
export class InternTable<T extends object> {
  readonly #numbers = new Map<string, number>();
  /** The objects, each at the index that is its number. */
  readonly values: T[] = [];

  /** Returns the number of the object. */
  intern(value: T): number {
    const key = JSON.stringify(sortKeys(value));
    const number = this.#numbers.get(key) ?? this.values.push(value) - 1;
    this.#numbers.set(key, number);
    return number;
  }
}

/** Returns the object with its own keys in alphabetical order. */
export const sortKeys = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) as T;

/** Returns the stored result of a key, or computes and stores it. */
export function memoize<K, T>(results: Map<K, unknown>, key: K, compute: () => T): T {
  const stored = results.get(key) as T | undefined;
  if (stored !== undefined) return stored;
  const result = compute();
  results.set(key, result);
  return result;
}
