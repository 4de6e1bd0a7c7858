/**
 * Shares one call between concurrent callers. The call is not bound to the signal of any caller: an
 * aborted caller stops waiting, and the call continues for the others.
 */
export class SingleFlight<T> {
  readonly #call: () => Promise<T>;
  #flight: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(call: () => Promise<T>) {
    this.#call = call;
  }

  /**
   * Returns the result of the call in progress, or starts one.
   * @throws the error of the call, or the abort reason of the signal
   */
  async run(signal?: AbortSignal): Promise<T> {
    return await unlessAborted(this.#join(), signal);
  }

  /**
   * Returns the result of a call that starts now or later. The call in progress may already have
   * passed the requested data.
   * @throws as {@link run}
   */
  async runFresh(signal?: AbortSignal): Promise<T> {
    if (this.#flight === undefined) return await this.run(signal);
    const afterwards = async (): Promise<T> => {
      this.#next = undefined;
      return await this.#join();
    };
    this.#next ??= this.#flight.then(afterwards, afterwards);
    return await unlessAborted(this.#next, signal);
  }

  #join(): Promise<T> {
    this.#flight ??= this.#call().finally(() => (this.#flight = undefined));
    return this.#flight;
  }
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
