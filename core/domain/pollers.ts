/**
 * Maximum age of the last poll of an active poller (ms). A poll takes at most a minute, and the
 * next one follows. Temporal lists pollers for some minutes after their last poll.
 */
const POLL_MS = 75_000;

/**
 * Returns whether a task queue has an active poller.
 * @param accessesMs - start times of the last poll of each poller (ms since the epoch)
 */
export function hasRecentPoller(accessesMs: readonly number[], nowMs: number): boolean {
  return accessesMs.some((ms) => nowMs - ms < POLL_MS);
}
