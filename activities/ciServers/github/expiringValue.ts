import type { Clock } from '../clock.ts';

/** A value that is fetched when it is needed, kept while enough of its life is left, and fetched by one flight at a time. */
export class ExpiringValue<T> {
  readonly #fetch: () => Promise<{ value: T; expiresAtMs: number }>;
  readonly #minLeftMs: number;
  readonly #clock: Clock;
  #kept: { value: T; expiresAtMs: number } | undefined;
  #flight: Promise<T> | undefined;

  /**
   * @param fetch gets a new value; not bound to any caller's signal, because several callers wait for it
   * @param minLeftMs a kept value with less life than this is not given out any more
   */
  constructor(fetch: () => Promise<{ value: T; expiresAtMs: number }>, minLeftMs: number, clock: Clock) {
    this.#fetch = fetch;
    this.#minLeftMs = minLeftMs;
    this.#clock = clock;
  }

  async get(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#kept !== undefined && this.#kept.expiresAtMs - this.#clock.now() >= this.#minLeftMs) return this.#kept.value;
    this.#flight ??= this.#load().finally(() => (this.#flight = undefined));
    return unlessAborted(this.#flight, signal);
  }

  /** Drops the value if it is still this one: several callers that were refused with it cause one fetch. */
  forget(value: T): void {
    if (this.#kept?.value === value) this.#kept = undefined;
  }

  async #load(): Promise<T> {
    this.#kept = await this.#fetch();
    return this.#kept.value;
  }
}

/** Waits no longer when aborted; what is waited for goes on. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
