/**
 * File operations under way. Node's exit joins the threads that do them: one that hangs (a dead network volume, a log pipe nobody
 * reads) would keep the process for ever, so whoever must leave in time has to know.
 */
export class Pending {
  #count = 0;
  readonly #waiting: (() => void)[] = [];

  get any(): boolean {
    return this.#count > 0;
  }

  /** Counts an operation while it runs, and passes its result or failure on. */
  async track<T>(operation: Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await operation;
    } finally {
      this.#count--;
      if (this.#count === 0) for (const done of this.#waiting.splice(0)) done();
    }
  }

  /** Resolves when none is under way. */
  async settled(): Promise<void> {
    if (this.any) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
