/** The retry policy's own backoff, in ms: doubling, and the longest repeats. What a try itself met with names its own pace instead. */
export const RETRY_BACKOFF = { initialMs: 1_000, maxMs: 8_000 } as const;
