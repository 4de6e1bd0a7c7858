/**
 * Counter of file operations in progress. Node's exit joins the threads that execute them. An
 * operation that hangs (a dead network volume, a log pipe without a reader) would keep the process
 * running for ever, so code that must exit in time has to know about it.
 */
export class Pending {
  #count = 0;
  readonly #waiting: (() => void)[] = [];

  get any(): boolean {
    return this.#count > 0;
  }

  /** Counts an operation while it runs, and returns its result or failure. */
  async track<T>(operation: Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await operation;
    } finally {
      this.#count--;
      if (this.#count === 0) for (const done of this.#waiting.splice(0)) done();
    }
  }

  /** Resolves when no operation is in progress. */
  async settled(): Promise<void> {
    if (this.any) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
