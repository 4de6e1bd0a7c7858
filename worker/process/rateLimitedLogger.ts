/**
 * Logger for events that untrusted clients can cause at will: one line of each kind a minute, with
 * the number of those left out.
 */
export class RateLimitedLogger {
  readonly #everyMs: number;
  readonly #now: () => number;
  readonly #kinds = new Map<string, { at: number; leftOut: number }>();

  /** @param everyMs - between two lines of a kind, in ms */
  constructor(everyMs = 60_000, now: () => number = Date.now) {
    this.#everyMs = everyMs;
    this.#now = now;
  }

  /** Calls `write` if this kind's turn has come. @param kind - one of a few */
  line(kind: string, write: (leftOut: number) => void): void {
    const last = this.#kinds.get(kind);
    if (last && this.#now() - last.at < this.#everyMs) {
      last.leftOut++;
      return;
    }
    this.#kinds.set(kind, { at: this.#now(), leftOut: 0 });
    write(last?.leftOut ?? 0);
  }
}
