/** Pure. */

/**
 * Returns the smallest value that at least `share` (0 to 1) of the values do not exceed (nearest
 * rank).
 * @throws Error without values
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new Error('percentile: values must not be empty');
  return value;
}

/** Rounds to a number of digits after the point. */
export function roundTo(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}

/** Returns the arithmetic mean. @throws Error without values */
export function mean(values: readonly number[]): number {
  if (values.length === 0) throw new Error('mean: values must not be empty');
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
