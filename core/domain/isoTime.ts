/** A time for people, in ISO 8601. @param ms - since the epoch */
export const isoTime = (ms: number): string => new Date(ms).toISOString();
