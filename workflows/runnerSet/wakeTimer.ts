import { CancellationScope, isCancellation, sleep } from '@temporalio/workflow';

/** A timer, and whether it has fired. */
export interface Alarm {
  readonly at: number;
  readonly scope: CancellationScope;
  fired: boolean;
}

/**
 * The timer of a set. There is one timer, which is kept as long as it is early enough: most events
 * change no deadline, and must not cost a timer each.
 */
export class WakeTimer {
  #timer: Alarm | undefined;

  /**
   * Returns a timer for the given time, or an earlier one.
   * @param at - time (ms since the epoch)
   * @param now - the set's clock (ms since the epoch)
   */
  wakeAt(at: number, now: number): Alarm {
    if (
      this.#timer !== undefined &&
      !this.#timer.fired &&
      this.#timer.at <= at &&
      this.#timer.at > now
    )
      return this.#timer;
    this.#timer?.scope.cancel();
    const timer: Alarm = { at, scope: new CancellationScope(), fired: false };
    this.#timer = timer;
    const sleeping = timer.scope.run(
      async () => await sleep(Math.max(1, at - now), { summary: 'Wait for the next change' }),
    );
    void sleeping.then(
      () => (timer.fired = true),
      (error: unknown) => {
        if (!isCancellation(error)) throw error;
      },
    );
    return timer;
  }
}
