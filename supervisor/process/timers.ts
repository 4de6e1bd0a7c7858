import type { TimerName } from '../signals/events.ts';

/** What Node's setTimeout holds, in ms; beyond it fires at once. */
const MAX_MS = 2 ** 31 - 1;

/** The lifecycle's timers by name. Starting one again restarts it. Times are monotonic: a clock set back moves nothing. */
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
