import type { Clock } from '../ciServers/clock.ts';

/** One request that may be sent. Exactly one of its methods is called, once, when the request is over. */
export interface BreakerPermit {
  /** The server answered; what it said is no matter of the breaker's. */
  answered(): void;
  /** No answer, or one of something before the server. @param reason - for people */
  failed(reason: string): void;
  /** It was not sent after all, or its sender has lost interest: that says nothing about the server. */
  abandoned(): void;
}

/** An outage under way, and who is sent to look for its end. */
interface Outage {
  /** For people, in ms since the epoch. */
  readonly sinceMs: number;
  /** How the last request failed. */
  reason: string;
  probes: number;
  /** By the clock that nobody sets. */
  nextProbeMs: number;
  readonly over: PromiseWithResolvers<void>;
}

/** Who is turned away comes back after this long, in ms: nobody is far away when the server is back. */
export const OUTAGE_RETRY_MS = 1_000;

/** One failure is a bad moment, the next one in a row an outage. */
const FAILURES_IN_A_ROW = 2;
/** Between two probes, in ms: the first is sent at once, the last pause repeats. */
const PROBE_PAUSES_MS = [0, 1_000, 2_000] as const;
/** How long a request waits here for the end of an outage before it is turned away, in ms: long enough for what a probe finds out. */
const TIMEOUT_MS = 2_500;

/**
 * What all requests of this process to one server (with one credential) go through. While the server does not answer, one request is sent
 * every few seconds to find out whether it is back, however many wait; the others wait here for a moment, and are turned away. The first
 * answer lets all go. A probe is not waited for when the next is due: a server that is silent must not hold up for half a minute what one
 * that is back would answer at once.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #rejection: (why: string) => Error;
  #failuresInARow = 0;
  /** Counts beginnings and ends of outages: what became of a request sent before the last one says nothing about now. */
  #changes = 0;
  #outage: Outage | undefined;

  /** @param turnedAway - makes the error of a request that is not to be sent now, which shall come back after {@link OUTAGE_RETRY_MS} */
  constructor(clock: Clock, turnedAway: (why: string) => Error) {
    this.#clock = clock;
    this.#rejection = turnedAway;
  }

  /** The server answers, as far as this process knows. */
  get closed(): boolean {
    return this.#outage === undefined;
  }

  /**
   * Waits for the right to send a request.
   * @throws what it was given for requests that are turned away; the signal's reason when aborted
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
      await slept.catch(() => undefined); // an abort of the caller's has been thrown by the race
    }
  }
}
