/**
 * Logger for events that untrusted clients can cause at will. It writes one line of each kind per
 * minute, with the number of lines left out.
 */
export class RateLimitedLogger {
  readonly #everyMs: number;
  readonly #now: () => number;
  readonly #kinds = new Map<string, { at: number; leftOut: number }>();

  /**
   * Creates the logger.
   * @param everyMs - minimum time between two lines of a kind (ms).
   * @default 60000
   */
  constructor(everyMs = 60_000, now: () => number = Date.now) {
    this.#everyMs = everyMs;
    this.#now = now;
  }

  /**
   * Calls `write` unless a line of this kind was written less than `everyMs` ago.
   * @param kind - kind of the line, from a small fixed list
   * @param write - writes the line, with the number of lines left out before it
   */
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
