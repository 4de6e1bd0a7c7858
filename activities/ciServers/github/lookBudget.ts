import type { Clock } from '../clock.ts';

const HOUR_MS = 3_600_000;

/**
 * What looks at jobs may cost an hour, all sets of a credential in this process together: registrations, without which no job runs, need the rest. GitHub allows
 * 5,000 requests an hour at the least; answers that are as they were (304) cost none.
 */
export class LookBudget {
  readonly #perHour: number;
  readonly #clock: Clock;
  #hour = Number.NEGATIVE_INFINITY;
  #spent = 0;

  constructor(perHour: number, clock: Clock) {
    this.#perHour = perHour;
    this.#clock = clock;
  }

  /** May another request be sent? */
  get left(): boolean {
    const hour = Math.floor(this.#clock.elapsed() / HOUR_MS);
    if (hour !== this.#hour) [this.#hour, this.#spent] = [hour, 0];
    return this.#spent < this.#perHour;
  }

  spend(): void {
    this.#spent++;
  }
}
