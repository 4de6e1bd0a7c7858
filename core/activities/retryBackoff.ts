/** The retry policy's own backoff, in ms: doubling, and the longest repeats. What a try itself met with names its own pace instead. */
export const RETRY_BACKOFF = { firstMs: 1_000, longestMs: 8_000 } as const;
