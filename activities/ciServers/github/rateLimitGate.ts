import { CiServerError } from '../../ports.ts';
import type { Clock } from '../clock.ts';

/** Limits of the requests with one credential. */
export interface GateLimits {
  /** Maximum concurrent requests. GitHub permits 100 per credential, over all processes. */
  readonly maxInFlight: number;
  /** Maximum points per minute and endpoint. `undefined` sets no limit. */
  readonly pointsPerMinute: number | undefined;
  /**
   * Maximum time that a request waits for its turn (ms). Requests that would wait longer are
   * rejected.
   * @default 10000
   */
  readonly maxLocalWaitMs?: number;
}

/** The right to send one request. Exactly one of its methods is called, once, when the request is over. */
export interface GatePass {
  /** The server answered, and did not speak of limits. */
  completed(): void;
  /** The server said to wait (`retryAfterMs`, where it said how long). @returns how long to wait, in ms */
  rateLimited(retryAfterMs: number | undefined): number;
  /** No answer. */
  failed(): void;
}

/** https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api: at least a minute, then exponentially longer. */
const FIRST_PAUSE_MS = 60_000;
const MAX_PAUSE_MS = 16 * 60_000;
/** The server's minute, and a second more: requests do not arrive at the pace they are sent at. */
const MINUTE_MS = 61_000;

/**
 * What all requests of one credential in this process go through.
 *
 * - Once one of them is told to wait, the others are turned away with the rest of that wait, without a call to the server. When the wait
 *   is over, a single request goes ahead and the others follow only if it is not told to wait again: each process costs at most one
 *   extra call per wait.
 * - At most `maxInFlight` at a time, and at most `pointsPerMinute` per endpoint; short waits for a turn happen here, longer ones are the
 *   caller's (`rate_limited` with `retryAfterMs`), where they hold no slot and can be seen.
 */
export class RateLimitGate {
  readonly #credential: string;
  readonly #limits: Required<GateLimits>;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** Times of the last requests of an endpoint, reserved ones in the future included; as many as a minute may hold. */
  readonly #nextAllowedAt = new Map<string, number[]>();
  /** Those who wait for a slot, the first first. */
  readonly #queue = new Set<PromiseWithResolvers<void>>();
  #inFlight = 0;
  /** By the clock that nobody sets, as all times here: a wait is as long as the server said, whatever becomes of the machine's own time. */
  #pausedUntil = 0;
  /** Counts the waits; an answer to a request sent before the present one says nothing about it. */
  #pause = 0;
  /** Waits since the last good answer. */
  #pausesInARow = 0;

  constructor(
    credential: string,
    limits: GateLimits,
    clock: Clock,
    random: () => number = Math.random,
  ) {
    this.#credential = credential;
    this.#limits = { maxLocalWaitMs: 10_000, ...limits };
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Waits for this request's turn.
   * @param endpoint method and route template
   * @param points 1 for a read, 5 for a write
   * @throws CiServerError `rate_limited` with `retryAfterMs` when it is not to be sent now; the signal's reason when aborted
   */
  async enter(endpoint: string, points: number, signal?: AbortSignal): Promise<GatePass> {
    signal?.throwIfAborted();
    this.#refuseWhilePaused();
    const wait = this.#reserve(endpoint, points);
    if (wait > 0) {
      await this.#clock.sleep(wait, signal);
      this.#refuseWhilePaused();
    }
    await this.#takeSlot(signal);
    if (this.#clock.elapsed() < this.#pausedUntil) {
      this.#freeSlot();
      throw this.#pausedError();
    }
    return this.#pass();
  }

  #pass(): GatePass {
    const pause = this.#pause;
    return {
      completed: () => {
        if (pause === this.#pause) this.#pausesInARow = 0;
        this.#freeSlot();
      },
      failed: () => this.#freeSlot(),
      rateLimited: (retryAfterMs) => {
        if (pause === this.#pause) {
          this.#pause += 1;
          this.#pausesInARow += 1;
        }
        const own =
          retryAfterMs ??
          Math.min(FIRST_PAUSE_MS * 2 ** Math.max(0, this.#pausesInARow - 1), MAX_PAUSE_MS);
        this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.elapsed() + own);
        for (const waiting of this.#queue) waiting.reject(this.#pausedError());
        this.#queue.clear();
        this.#freeSlot();
        return this.#withJitter(this.#pausedUntil - this.#clock.elapsed());
      },
    };
  }

  #refuseWhilePaused(): void {
    if (this.#clock.elapsed() < this.#pausedUntil) throw this.#pausedError();
  }

  #pausedError(): CiServerError {
    return this.#rejected(
      this.#pausedUntil - this.#clock.elapsed(),
      'the server told another request of this credential to wait',
    );
  }

  #rejected(waitMs: number, reason: string): CiServerError {
    const retryAfterMs = this.#withJitter(waitMs);
    return new CiServerError(
      'rate_limited',
      `credential "${this.#credential}": not sent, ${reason}; next try in ${Math.ceil(retryAfterMs / 1000)} s`,
      { retryAfterMs },
    );
  }

  /** Up to a tenth more (1 s to 30 s), so that those who were turned away together do not come back in one instant. */
  #withJitter(waitMs: number): number {
    return Math.ceil(waitMs + this.#random() * Math.min(Math.max(waitMs / 10, 1000), 30_000));
  }

  /** Takes the endpoint's next turn and returns how far off it is, in ms. */
  #reserve(endpoint: string, points: number): number {
    const budget = this.#limits.pointsPerMinute;
    if (budget === undefined) return 0;
    const perMinute = Math.max(1, Math.floor(budget / points));
    const turns = this.#nextAllowedAt.get(endpoint) ?? [];
    this.#nextAllowedAt.set(endpoint, turns);
    const now = this.#clock.elapsed();
    const oldest = turns.length < perMinute ? undefined : turns[0];
    const turn = Math.max(now, oldest === undefined ? now : oldest + MINUTE_MS);
    if (turn - now > this.#limits.maxLocalWaitMs) {
      throw this.#rejected(turn - now, `${endpoint} may be called ${perMinute} times a minute`);
    }
    turns.push(turn);
    if (turns.length > perMinute) turns.shift();
    return turn - now;
  }

  /** After a wait, one request alone finds out whether it is really over. */
  get #slots(): number {
    return this.#pausesInARow > 0 ? 1 : this.#limits.maxInFlight;
  }

  async #takeSlot(signal: AbortSignal | undefined): Promise<void> {
    if (this.#queue.size === 0 && this.#inFlight < this.#slots) {
      this.#inFlight += 1;
      return;
    }
    const waiting = Promise.withResolvers<void>();
    this.#queue.add(waiting);
    // Only who still waits: a slot that was handed over is not to be lost.
    const leave = (error: unknown): void =>
      void (this.#queue.delete(waiting) && waiting.reject(error));
    const over = new AbortController();
    signal?.addEventListener('abort', () => leave(signal.reason), {
      once: true,
      signal: over.signal,
    });
    const deadline = this.#clock.sleep(this.#limits.maxLocalWaitMs, over.signal).then(
      () =>
        leave(this.#rejected(1000, `${this.#inFlight} requests of this credential are in flight`)),
      () => undefined, // admitted or refused before
    );
    try {
      await waiting.promise;
    } finally {
      over.abort();
      await deadline;
    }
  }

  #freeSlot(): void {
    this.#inFlight -= 1;
    while (this.#inFlight < this.#slots) {
      const [next] = this.#queue;
      if (next === undefined) return;
      this.#queue.delete(next);
      this.#inFlight += 1; // handed over: nobody can slip in between
      next.resolve();
    }
  }
}
