/** A poll ends after a minute at the latest, and the next one follows; Temporal tells of pollers for some minutes after their last. */
const POLL_MS = 75_000;

/** @param accessesMs - when each poller of a task queue began its last poll (ms since the epoch) */
export function hasRecentPoller(accessesMs: readonly number[], nowMs: number): boolean {
  return accessesMs.some((ms) => nowMs - ms < POLL_MS);
}
