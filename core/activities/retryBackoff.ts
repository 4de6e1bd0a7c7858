/**
 * Backoff of the retry policy of activities (ms): it doubles from the initial to the maximum
 * interval. An attempt may set its own delay instead.
 */
export const RETRY_BACKOFF = { initialMs: 1_000, maxMs: 8_000 } as const;
