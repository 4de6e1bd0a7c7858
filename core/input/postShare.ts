/** The part of an interrupted job's grace that is kept for `post`. Pure. */
import { formatDuration } from '../domain/duration.ts';
import { graceBudget } from './graceBudget.ts';

/** Share of a job's grace that the stop of a step of `pre` or `test` may use up. The rest is kept for `post`. */
const STOP_SHARE = 3 / 4;

/**
 * Checks that stopping a step leaves post's share of the job's grace.
 * @param gracePeriod - the step's, valid
 * @param jobGraceMs - the job's `gracePeriod` (ms)
 * @returns what is wrong, for the step's field `gracePeriod`; undefined if it fits
 */
export function postShareError(gracePeriod: string, jobGraceMs: number): string | undefined {
  const limitSeconds = Math.floor((jobGraceMs * STOP_SHARE) / 1_000);
  const neededSeconds = podSeconds(gracePeriod);
  if (neededSeconds <= limitSeconds) return undefined;
  const raise = `raise the job's gracePeriod to at least ${seconds(Math.ceil(neededSeconds / STOP_SHARE))}`;
  const longest = longestGraceSeconds(limitSeconds);
  const fix =
    longest > 0 ? `lower it to at most ${seconds(longest)}, or ${raise}` : `${raise}, or lower it`;
  return `must leave a quarter of the job's gracePeriod of ${formatDuration(jobGraceMs)} to post: the pod of a step with a grace of ${gracePeriod} gets ${seconds(neededSeconds)} to stop; ${fix}`;
}

const podSeconds = (gracePeriod: string): number => graceBudget({ gracePeriod }, {}).podSeconds;
const seconds = (count: number): string => formatDuration(count * 1_000);

/** Longest grace of a step in whole seconds whose pod stops within a limit; 0 if there is none. */
function longestGraceSeconds(limitSeconds: number): number {
  // A pod gets a quarter more, so that the search is at most some steps long.
  let longest = Math.max(0, Math.ceil(limitSeconds * 0.8) + 1);
  while (longest > 0 && podSeconds(`${longest}s`) > limitSeconds) longest--;
  return longest;
}
