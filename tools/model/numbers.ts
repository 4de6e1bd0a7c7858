/** Things get numbers, so that a state is short, and a question is asked once. */

/** Gives things numbers, the same to equal ones. */
export class Numbers<T extends object> {
  readonly #known = new Map<string, number>();
  readonly all: T[] = [];

  of(thing: T): number {
    const key = JSON.stringify(sorted(thing));
    const known = this.#known.get(key) ?? this.all.push(thing) - 1;
    this.#known.set(key, known);
    return known;
  }
}

/** The same in whatever order it was put together. */
export const sorted = <T extends object>(thing: T): T =>
  Object.fromEntries(Object.entries(thing).toSorted(([a], [b]) => (a < b ? -1 : 1))) as T;

/** Asks once. */
export function once<K, T>(answers: Map<K, unknown>, question: K, answer: () => T): T {
  const known = answers.get(question) as T | undefined;
  if (known !== undefined) return known;
  const found = answer();
  answers.set(question, found);
  return found;
}
