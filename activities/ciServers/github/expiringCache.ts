import type { Clock } from '../clock.ts';
import { SingleFlight } from '../singleFlight.ts';

/** What a fetch gives: a value, and when it is worth nothing any more (ms since the epoch). */
export interface Expiring<T> {
  readonly value: T;
  readonly expiresAtMs: number;
}

/** A value that is fetched when it is needed, kept while enough of its life is left, and fetched by one caller for all. */
export class ExpiringCache<T> {
  readonly #fetch: SingleFlight<Expiring<T>>;
  readonly #minRemainingMs: number;
  readonly #clock: Clock;
  #kept: Expiring<T> | undefined;

  /**
   * @param fetch - gets a new value
   * @param minLeftMs - a kept value with less life than this is not given out any more
   */
  constructor(fetch: () => Promise<Expiring<T>>, minLeftMs: number, clock: Clock) {
    this.#fetch = new SingleFlight(async () => (this.#kept = await fetch()));
    this.#minRemainingMs = minLeftMs;
    this.#clock = clock;
  }

  async get(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (
      this.#kept !== undefined &&
      this.#kept.expiresAtMs - this.#clock.now() >= this.#minRemainingMs
    )
      return this.#kept.value;
    return (await this.#fetch.run(signal)).value;
  }

  /** Drops the value if it is still this one: several callers that were refused with it cause one fetch. */
  forget(value: T): void {
    if (this.#kept?.value === value) this.#kept = undefined;
  }
}
