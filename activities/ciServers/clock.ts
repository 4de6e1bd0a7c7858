import { setTimeout as delay } from 'node:timers/promises';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** Time as the adapters see it; injected so that tests need not wait. */
export interface Clock {
  /** ms since the epoch, as far as this machine knows: it may be set, in either direction. */
  now(): number;
  /** ms since some moment, by a clock that nobody sets: for how long something shall last. */
  elapsed(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Clock of this machine. Tests replace it. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, omitUndefined({ signal }));
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
