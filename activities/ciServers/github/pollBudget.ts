import type { Clock } from '../clock.ts';

/**
 * Budget of polling requests of one kind per interval, shared by all sets of a credential in this
 * process. Registrations, without which no job runs, need the rest of the rate limit. GitHub
 * permits at least 5,000 requests per hour; unchanged responses (304) cost nothing.
 */
export class PollBudget {
  readonly #allowed: { readonly requests: number; readonly everyMs: number };
  readonly #clock: Clock;
  /** End of the interval that its first request started, by {@link Clock.elapsed}. */
  #endsAt = Number.NEGATIVE_INFINITY;
  #spent = 0;

  constructor(allowed: { readonly requests: number; readonly everyMs: number }, clock: Clock) {
    this.#allowed = allowed;
    this.#clock = clock;
  }

  /** Whether another request may be sent. */
  get left(): boolean {
    const now = this.#clock.elapsed();
    if (now >= this.#endsAt) [this.#endsAt, this.#spent] = [now + this.#allowed.everyMs, 0];
    return this.#spent < this.#allowed.requests;
  }

  /** Time until the budget is renewed (ms). */
  get renewsInMs(): number {
    return Math.max(0, this.#endsAt - this.#clock.elapsed());
  }

  /** Counts one request. */
  spend(): void {
    this.#spent++;
  }
}
