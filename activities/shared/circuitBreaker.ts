import type { Clock } from '../ciServers/clock.ts';

/**
 * Permit for one request. Exactly one of its methods must be called, once, when the request is
 * over.
 */
export interface BreakerPermit {
  /** The server answered. The breaker ignores the content of the response. */
  answered(): void;
  /**
   * Records that there was no response, or one that did not come from the server.
   * @param reason - shown to people
   */
  failed(reason: string): void;
  /**
   * The request was not sent, or its caller no longer needs it. This says nothing about the server.
   */
  abandoned(): void;
}

/** Current outage and the state of its probes. */
interface Outage {
  /** Start of the outage (ms since the epoch), shown to people. */
  readonly sinceMs: number;
  /** Failure of the last request. */
  reason: string;
  probes: number;
  /** Time of the next probe by the monotonic clock (ms). */
  nextProbeMs: number;
  readonly over: PromiseWithResolvers<void>;
}

/**
 * Time to wait before a rejected request is sent again (ms). It is short, so that callers continue
 * soon after the server is back.
 */
export const OUTAGE_RETRY_MS = 1_000;

/**
 * Number of consecutive failures that make an outage. A single failure may be a transient error.
 */
const FAILURES_IN_A_ROW = 2;
/**
 * Intervals between two probes (ms). The first probe is sent immediately; the last interval
 * repeats.
 */
const PROBE_PAUSES_MS = [0, 1_000, 2_000] as const;
/**
 * Maximum time that a request waits for the end of an outage before it is rejected (ms). It is long
 * enough for the result of a probe.
 */
const TIMEOUT_MS = 2_500;

/**
 * Circuit breaker for all requests of this process to one server with one credential.
 *
 * While the server does not answer, one request is sent every few seconds as a probe, regardless of
 * the number of waiting requests. The others wait for a moment and are then rejected. The first
 * answer releases all of them. The next probe does not wait for the result of the previous one: a
 * request that hangs for half a minute must not delay the discovery that the server is back.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #rejection: (why: string) => Error;
  #failuresInARow = 0;
  /**
   * Number of starts and ends of outages. The result of a request that was sent before the latest
   * one says nothing about the current state.
   */
  #changes = 0;
  #outage: Outage | undefined;

  /**
   * @param turnedAway - creates the error for a rejected request, which is to be retried after
   * {@link OUTAGE_RETRY_MS}
   */
  constructor(clock: Clock, turnedAway: (why: string) => Error) {
    this.#clock = clock;
    this.#rejection = turnedAway;
  }

  /** Whether the server answers, as far as this process knows. */
  get closed(): boolean {
    return this.#outage === undefined;
  }

  /**
   * Waits for a permit to send a request.
   * @throws the error of `turnedAway` if the request is rejected
   * @throws the abort reason of the signal
   */
  async enter(signal?: AbortSignal): Promise<BreakerPermit> {
    signal?.throwIfAborted();
    const deadline = this.#clock.elapsed() + TIMEOUT_MS;
    for (;;) {
      const outage = this.#outage;
      const now = this.#clock.elapsed();
      if (outage === undefined) return this.#trial();
      if (now >= outage.nextProbeMs) return this.#probe(outage, now);
      if (now >= deadline)
        throw this.#rejection(
          `no answer since ${new Date(outage.sinceMs).toISOString()} (${outage.reason}); one request at a time finds out when it is back`,
        );
      await this.#pause(outage.over.promise, Math.min(deadline, outage.nextProbeMs) - now, signal);
    }
  }

  #probe(outage: Outage, now: number): BreakerPermit {
    outage.probes += 1;
    outage.nextProbeMs =
      now + (PROBE_PAUSES_MS[Math.min(outage.probes, PROBE_PAUSES_MS.length - 1)] ?? 0);
    return this.#trial();
  }

  #trial(): BreakerPermit {
    const changes = this.#changes;
    const unlessStale = (then: () => void) => (): void =>
      changes === this.#changes ? then() : undefined;
    return {
      answered: unlessStale(() => this.#answered()),
      failed: (reason) => unlessStale(() => this.#failed(reason))(),
      abandoned: unlessStale(() => {
        if (this.#outage !== undefined) this.#outage.nextProbeMs = this.#clock.elapsed();
      }),
    };
  }

  #answered(): void {
    this.#failuresInARow = 0;
    if (this.#outage === undefined) return;
    this.#outage.over.resolve();
    this.#outage = undefined;
    this.#changes += 1;
  }

  #failed(reason: string): void {
    this.#failuresInARow += 1;
    if (this.#outage !== undefined) this.#outage.reason = reason;
    else if (this.#failuresInARow >= FAILURES_IN_A_ROW) {
      this.#outage = {
        sinceMs: this.#clock.now(),
        reason,
        probes: 0,
        nextProbeMs: this.#clock.elapsed(),
        over: Promise.withResolvers(),
      };
      this.#changes += 1;
    }
  }

  async #pause(over: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const woken = new AbortController();
    const slept = this.#clock.sleep(
      ms,
      signal === undefined ? woken.signal : AbortSignal.any([woken.signal, signal]),
    );
    try {
      await Promise.race([over, slept]);
    } finally {
      woken.abort();
      await slept.catch(() => undefined); // the race has already thrown the abort of the caller
    }
  }
}
