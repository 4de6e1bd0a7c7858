import type { Clock } from '../../activities/ciServers/clock.ts';

/** A clock that advances only when a test advances it. */
export class ManualClock implements Clock {
  #now: number;
  #elapsed = 0;
  readonly #sleepers = new Set<{ until: number; wake: () => void }>();

  constructor(start = Date.parse('2026-03-01T12:00:00Z')) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  /** Sets the time of the machine, which does not change the duration of sleeps. */
  set(byMs: number): void {
    this.#now += byMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const sleeper = {
        until: this.#elapsed + ms,
        wake: () => {
          this.#sleepers.delete(sleeper);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener(
        'abort',
        () => {
          this.#sleepers.delete(sleeper);
          reject(signal.reason as Error);
        },
        { once: true },
      );
    });
  }

  /** Advances the clock and ends sleeps that are due. Returns after their code has run. */
  async advance(ms: number): Promise<void> {
    await new Promise(setImmediate); // pending calls start their sleep first
    this.#now += ms;
    this.#elapsed += ms;
    for (const sleeper of this.#sleepers) if (sleeper.until <= this.#elapsed) sleeper.wake();
    await new Promise(setImmediate);
  }
}
