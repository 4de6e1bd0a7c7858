import PQueue from 'p-queue';
import pRetry from 'p-retry';

/**
 * Delays of 0.1, 0.5, 2.5 and 5 s between five attempts. A server that restarts is back by then.
 */
const RETRIES = { retries: 4, minTimeout: 100, factor: 5, maxTimeout: 5_000 } as const;

/**
 * Runs small tasks with limited concurrency and retries each for a few seconds. A task that still
 * fails is reported and never throws.
 */
export class RetryQueue {
  readonly #queue: PQueue;
  readonly #onFailure: (error: unknown, what: string) => void;
  #stopped = false;

  /**
   * @param limit - maximum number of concurrent tasks
   * @param onFailure - called for a task that failed all its attempts
   */
  constructor(limit: number, onFailure: (error: unknown, what: string) => void) {
    this.#queue = new PQueue({ concurrency: limit });
    this.#onFailure = onFailure;
  }

  /**
   * Adds a task. Resolves when it is done or has failed all its attempts. Never resolves if the
   * queue is stopped before the task starts.
   */
  async add(what: string, run: () => Promise<void>): Promise<void> {
    if (this.#stopped) return;
    await this.#queue.add(async () => await this.#attempt(what, run));
  }

  /** Resolves when no task is waiting or running. */
  async idle(): Promise<void> {
    await this.#queue.onIdle();
  }

  /** Drops the waiting tasks and resolves when no task is running. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queue.clear();
    await this.#queue.onIdle();
  }

  async #attempt(what: string, run: () => Promise<void>): Promise<void> {
    try {
      // Not with the `signal` of p-retry, which would turn a task that succeeds after the stop into
      // a failure.
      await pRetry(run, { ...RETRIES, shouldRetry: () => !this.#stopped });
    } catch (error) {
      this.#onFailure(error, what);
    }
  }
}
