import type { Clock } from '../clock.ts';
import { SingleFlight } from '../singleFlight.ts';

/** A fetched value and its expiry (ms since the epoch). */
export interface Expiring<T> {
  readonly value: T;
  readonly expiresAtMs: number;
}

/**
 * Caches a value that expires. It is fetched when it is needed, once for all concurrent callers,
 * and kept while enough of its validity remains.
 */
export class ExpiringCache<T> {
  readonly #fetch: SingleFlight<Expiring<T>>;
  readonly #minRemainingMs: number;
  readonly #clock: Clock;
  #kept: Expiring<T> | undefined;

  /**
   * @param fetch - fetches a new value
   * @param minLeftMs - minimum remaining validity of a cached value (ms)
   */
  constructor(fetch: () => Promise<Expiring<T>>, minLeftMs: number, clock: Clock) {
    this.#fetch = new SingleFlight(async () => (this.#kept = await fetch()));
    this.#minRemainingMs = minLeftMs;
    this.#clock = clock;
  }

  /** Returns the cached value, or fetches a new one. */
  async get(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (
      this.#kept !== undefined &&
      this.#kept.expiresAtMs - this.#clock.now() >= this.#minRemainingMs
    )
      return this.#kept.value;
    return (await this.#fetch.run(signal)).value;
  }

  /**
   * Drops the value if it is still the cached one. Several callers that were rejected with the same
   * value cause one fetch.
   */
  forget(value: T): void {
    if (this.#kept?.value === value) this.#kept = undefined;
  }
}
