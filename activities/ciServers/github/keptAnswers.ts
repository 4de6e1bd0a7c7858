/** Answers with their ETags, the parsed part only: GitHub's lists of runs are megabytes, of which some ids are wanted. */
export class KeptAnswers {
  readonly #capacity: number;
  readonly #kept = new Map<string, { readonly etag: string; readonly value: unknown }>();

  constructor(capacity = 5_000) {
    this.#capacity = capacity;
  }

  get(key: string): { readonly etag: string; readonly value: unknown } | undefined {
    const kept = this.#kept.get(key);
    if (kept) this.set(key, kept.etag, kept.value); // used last
    return kept;
  }

  set(key: string, etag: string, value: unknown): void {
    this.#kept.delete(key);
    this.#kept.set(key, { etag, value });
    if (this.#kept.size > this.#capacity) this.#kept.delete(this.#kept.keys().next().value ?? '');
  }
}
