import { setTimeout as delay } from 'node:timers/promises';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** Time as the adapters see it. Injected so that tests need not wait. */
export interface Clock {
  /** Returns the wall clock (ms since the epoch). It may be set in either direction. */
  now(): number;
  /** Returns a monotonic clock (ms since an arbitrary moment), for durations. */
  elapsed(): number;
  /** Resolves after `ms`. Rejects with the abort reason of the signal if it is aborted first. */
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
