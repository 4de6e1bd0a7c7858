/**
 * A call that many want at once and one makes. It is bound to no caller's signal: who is aborted waits no longer, and the call goes on
 * for the others.
 */
export class SingleFlight<T> {
  readonly #call: () => Promise<T>;
  #flight: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(call: () => Promise<T>) {
    this.#call = call;
  }

  /** Shares the call under way, or makes one. @throws the signal's reason when aborted; what the call failed with */
  async run(signal?: AbortSignal): Promise<T> {
    return await unlessAborted(this.#join(), signal);
  }

  /** Shares a call that begins now or later: the one under way may have passed what is asked for. @throws as {@link run} */
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
