/** Runs small jobs a few at a time, retrying each for a while; what still fails is reported, never thrown. */
export class TaskQueue {
  readonly #limit: number;
  readonly #onFailure: (error: unknown, what: string) => void;
  readonly #waiting: { what: string; run: () => Promise<void> }[] = [];
  readonly #idlers: (() => void)[] = [];
  #running = 0;
  #stopped = false;

  /**
   * @param limit - jobs under way at once
   * @param onFailure - told of a job that failed all its tries
   */
  constructor(limit: number, onFailure: (error: unknown, what: string) => void) {
    this.#limit = limit;
    this.#onFailure = onFailure;
  }

  add(what: string, run: () => Promise<void>): void {
    if (this.#stopped) return;
    this.#waiting.push({ what, run });
    this.#next();
  }

  /** Resolves when nothing waits and nothing runs. */
  async idle(): Promise<void> {
    if (this.#running === 0 && this.#waiting.length === 0) return;
    await new Promise<void>((resolve) => this.#idlers.push(resolve));
  }

  /** Drops what waits and resolves when nothing runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#waiting.length = 0;
    await this.idle();
  }

  #next(): void {
    while (this.#running < this.#limit) {
      const job = this.#waiting.shift();
      if (job === undefined) break;
      this.#running++;
      void this.#attempt(job).finally(() => {
        this.#running--;
        this.#next();
      });
    }
    if (this.#running === 0 && this.#waiting.length === 0) for (const idle of this.#idlers.splice(0)) idle();
  }

  async #attempt(job: { what: string; run: () => Promise<void> }): Promise<void> {
    for (const delayMs of [100, 500, 2_000, 5_000, undefined]) {
      try {
        await job.run();
        return;
      } catch (error) {
        if (delayMs === undefined || this.#stopped) {
          this.#onFailure(error, job.what);
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, delayMs));
      }
    }
  }
}
