/** First millisecond of the year 10000, which ISO 8601 cannot express with four digits. */
const END_MS = 253_402_300_800_000;

/** Whether the value is a time (ms since the epoch) in the years 1970 to 9999. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < END_MS;
}

/**
 * Returns the time, or the limit if it is later or invalid.
 * @param limit - ms since the epoch
 */
export function limitTime(value: unknown, limit: number): number {
  return isTime(value) ? Math.min(value, limit) : limit;
}
