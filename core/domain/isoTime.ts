/**
 * Formats a time in ISO 8601.
 * @param ms - ms since the epoch
 */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
