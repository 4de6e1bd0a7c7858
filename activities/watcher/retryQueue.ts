import PQueue from 'p-queue';
import pRetry from 'p-retry';

/** 0.1, 0.5, 2.5 and 5 s between five tries: a server that restarts is back by then. */
const RETRIES = { retries: 4, minTimeout: 100, factor: 5, maxTimeout: 5_000 } as const;

/** Runs small jobs a few at a time, retrying each for a while; what still fails is reported, never thrown. */
export class RetryQueue {
  readonly #queue: PQueue;
  readonly #onFailure: (error: unknown, what: string) => void;
  #stopped = false;

  /**
   * @param limit - jobs under way at once
   * @param onFailure - told of a job that failed all its tries
   */
  constructor(limit: number, onFailure: (error: unknown, what: string) => void) {
    this.#queue = new PQueue({ concurrency: limit });
    this.#onFailure = onFailure;
  }

  /** Resolves when the job is done or given up; never, if the queue is stopped before its turn */
  async add(what: string, run: () => Promise<void>): Promise<void> {
    if (this.#stopped) return;
    await this.#queue.add(async () => await this.#attempt(what, run));
  }

  /** Resolves when nothing waits and nothing runs. */
  async idle(): Promise<void> {
    await this.#queue.onIdle();
  }

  /** Drops what waits and resolves when nothing runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queue.clear();
    await this.#queue.onIdle();
  }

  async #attempt(what: string, run: () => Promise<void>): Promise<void> {
    try {
      // Not by p-retry's `signal`, which would make a failure of what has succeeded since the stop.
      await pRetry(run, { ...RETRIES, shouldRetry: () => !this.#stopped });
    } catch (error) {
      this.#onFailure(error, what);
    }
  }
}
