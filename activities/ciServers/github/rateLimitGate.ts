import { CiServerError } from '../../ports/ciServerError.ts';
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

/**
 * Permit to send one request. Exactly one of its methods must be called, once, when the request is
 * over.
 */
export interface GatePass {
  /** The server answered without a rate limit error. */
  completed(): void;
  /**
   * Records a rate limit error.
   * @param retryAfterMs - wait that the server requested, if any (ms)
   * @returns the time to wait (ms)
   */
  rateLimited(retryAfterMs: number | undefined): number;
  /** There was no response. */
  failed(): void;
}

/**
 * Waits without a time from the server. GitHub's rule is at least a minute, then exponentially
 * longer: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
 */
const FIRST_PAUSE_MS = 60_000;
const MAX_PAUSE_MS = 16 * 60_000;
/**
 * The server's minute plus a second, because requests do not arrive at the same intervals at which
 * they are sent (ms).
 */
const MINUTE_MS = 61_000;

/**
 * Rate limit gate for all requests of one credential in this process.
 *
 * - When a response requests a wait, all other requests are rejected with the rest of that wait
 *   and are not sent. After the wait, a single request is sent first. The others follow only if it
 *   does not request another wait, so each process sends at most one extra request per wait.
 * - At most `maxInFlight` requests are sent concurrently, and at most `pointsPerMinute` per
 *   endpoint. Short waits happen here. For longer waits the request is rejected (`rate_limited`
 *   with `retryAfterMs`), so that the caller waits without holding a slot, where the wait is
 *   visible.
 */
export class RateLimitGate {
  readonly #credential: string;
  readonly #limits: Required<GateLimits>;
  readonly #clock: Clock;
  readonly #random: () => number;
  /**
   * Times of the latest requests of each endpoint, at most as many as are permitted per minute.
   * They include reserved times in the future.
   */
  readonly #nextAllowedAt = new Map<string, number[]>();
  /** Requests that wait for a slot, in order of arrival. */
  readonly #queue = new Set<PromiseWithResolvers<void>>();
  #inFlight = 0;
  /**
   * End of the current wait by the monotonic clock, like all times here. The wait does not depend
   * on changes of the machine's wall clock.
   */
  #pausedUntil = 0;
  /**
   * Number of waits. A response to a request that was sent before the current wait says nothing
   * about it.
   */
  #pause = 0;
  /** Number of waits since the last successful response. */
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
   * Waits for a permit to send a request.
   * @param endpoint - method and route template
   * @param points - 1 for a read, 5 for a write
   * @throws CiServerError `rate_limited` with `retryAfterMs` if the request must not be sent now
   * @throws the abort reason of the signal
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
      'the server has asked another request with this credential to wait',
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

  /**
   * Adds up to a tenth (1 s to 30 s), so that requests that were rejected together are not retried
   * together.
   */
  #withJitter(waitMs: number): number {
    return Math.ceil(waitMs + this.#random() * Math.min(Math.max(waitMs / 10, 1000), 30_000));
  }

  /** Reserves the next request of the endpoint and returns the time until then (ms). */
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

  /** Number of slots. After a wait, a single request finds out whether the limit has ended. */
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
    // Only if it is still waiting: a slot that was handed over must not be lost.
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
      () => undefined, // admitted or rejected before
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
      this.#inFlight += 1; // handed over, so that no other request can take the slot
      next.resolve();
    }
  }
}
