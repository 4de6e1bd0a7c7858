import type { TimerName } from '../signals/events.ts';

/** Maximum delay of Node's setTimeout (ms). A longer one fires immediately. */
const MAX_MS = 2 ** 31 - 1;

/**
 * Timers of the lifecycle, by name. Starting a timer again restarts it. Times are monotonic, so
 * that setting the clock back has no effect.
 */
export class Timers {
  readonly #running = new Map<TimerName, NodeJS.Timeout>();
  readonly #fire: (name: TimerName) => void;

  constructor(fire: (name: TimerName) => void) {
    this.#fire = fire;
  }

  start(name: TimerName, ms: number): void {
    clearTimeout(this.#running.get(name));
    this.#arm(name, performance.now() + ms);
  }

  stop(except: readonly TimerName[]): void {
    for (const [name, timer] of this.#running) {
      if (except.includes(name)) continue;
      clearTimeout(timer);
      this.#running.delete(name);
    }
  }

  #arm(name: TimerName, atMs: number): void {
    const leftMs = atMs - performance.now();
    const timer = setTimeout(
      () => {
        if (leftMs > MAX_MS) return this.#arm(name, atMs);
        this.#running.delete(name);
        this.#fire(name);
      },
      Math.min(Math.max(leftMs, 0), MAX_MS),
    );
    this.#running.set(name, timer);
  }
}
