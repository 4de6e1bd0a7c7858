/** A point that several lives must have reached before something is done, once. */
export class Meeting {
  readonly #expected: number;
  readonly #checks: (() => void)[] = [];
  readonly #over: Promise<void>;
  #act: () => void = () => undefined;
  #callOff: (reason: Error) => void = () => undefined;

  /** @param act - done when all have arrived; nobody goes on before */
  constructor(expected: number, act: () => Promise<void>) {
    this.#expected = expected;
    const complete = new Promise<void>((resolve, reject) => {
      this.#act = resolve;
      this.#callOff = reject;
    });
    this.#over = complete.then(async () => {
      for (const check of this.#checks) check();
      await act();
    });
    this.#over.catch(() => undefined); // those who arrive hear of it
  }

  /** @param check - must hold when the last one has arrived */
  async arrive(check: () => void = () => undefined): Promise<void> {
    if (this.#checks.push(check) === this.#expected) this.#act();
    await this.#over;
  }

  /** Somebody will not come: all others hear why instead of waiting. Without effect once all have arrived. */
  callOff(cause: unknown): void {
    this.#callOff(new Error('another life has failed on its way to the same point', { cause }));
  }

  /** @throws when the meeting is called off before `promise` is settled */
  async unlessCalledOff<T>(promise: Promise<T>): Promise<T> {
    return await Promise.race([promise, this.#over.then(async () => await promise)]);
  }
}
