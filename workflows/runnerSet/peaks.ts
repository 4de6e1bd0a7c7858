/**
 * Numbers of runners that a set wanted within its `scaleDownDelay`. A set scales down to the
 * maximum of them, as a HorizontalPodAutoscaler does within its stabilization window. Pure.
 */

/**
 * Number of runners that a set wanted, and the time until which it wanted them (ms since the
 * epoch). In a list of peaks each one is later and lower than the one before.
 */
export type Peak = readonly [until: number, runners: number];

/**
 * Maximum number of peaks within one delay. Times are rounded up to this part of the delay, because
 * continue-as-new carries the list over.
 */
const PEAKS_PER_DELAY = 60;

/** Change of the number of runners that a set wants. */
interface DesiredChange {
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the peaks after a change, without those that have expired or are not above the new
 * number.
 */
export function recordDesired(
  peaks: readonly Peak[],
  { from, to }: DesiredChange,
  now: number,
  delayMs: number,
): readonly Peak[] {
  const kept = peaks.filter(([until, runners]) => until + delayMs > now && runners > to);
  if (from <= to || delayMs === 0) return kept;
  const grain = Math.ceil(delayMs / PEAKS_PER_DELAY);
  const until = Math.ceil(now / grain) * grain;
  const [lastUntil = 0] = kept.at(-1) ?? [];
  // An earlier peak is higher, so one that lasts as long covers this one.
  return lastUntil >= until ? kept : [...kept, [until, from]];
}

/** Returns the maximum number of runners wanted within the delay before now, or 0. */
export function recentPeak(peaks: readonly Peak[], now: number, delayMs: number): number {
  return peaks.find(([until]) => until + delayMs > now)?.[1] ?? 0;
}

/**
 * Returns the time at which the peaks allow fewer than this number of runners (ms since the epoch).
 */
export function scaleDownTime(peaks: readonly Peak[], runners: number, delayMs: number): number {
  const last = peaks.findLast(([, wanted]) => wanted >= runners);
  return last === undefined ? 0 : last[0] + delayMs;
}
