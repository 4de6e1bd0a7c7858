import type { Clock } from '../clock.ts';

/**
 * What looks of one kind may cost in each span of time, all sets of a credential in this process together: registrations, without which no job runs, need the rest.
 * GitHub allows 5,000 requests an hour at the least; answers that are as they were (304) cost none.
 */
export class PollBudget {
  readonly #allowed: { readonly requests: number; readonly everyMs: number };
  readonly #clock: Clock;
  /** Of the span that the first request of it has begun; by {@link Clock.elapsed}. */
  #endsAt = Number.NEGATIVE_INFINITY;
  #spent = 0;

  constructor(allowed: { readonly requests: number; readonly everyMs: number }, clock: Clock) {
    this.#allowed = allowed;
    this.#clock = clock;
  }

  /** May another request be sent? */
  get left(): boolean {
    const now = this.#clock.elapsed();
    if (now >= this.#endsAt) [this.#endsAt, this.#spent] = [now + this.#allowed.everyMs, 0];
    return this.#spent < this.#allowed.requests;
  }

  /** Time until the budget is renewed (ms). */
  get renewsInMs(): number {
    return Math.max(0, this.#endsAt - this.#clock.elapsed());
  }

  spend(): void {
    this.#spent++;
  }
}
