/** Share of an interrupted job's grace period that is reserved for `post`. Pure. */
import { formatDuration } from '../domain/duration.ts';
import { graceBudget } from './graceBudget.ts';

/**
 * Share of a job's grace period that the stop of a step of `pre` or `test` may use. The rest is
 * reserved for `post`.
 */
const STOP_SHARE = 3 / 4;

/**
 * Checks that the stop of a step leaves the share of `post` in the job's grace period.
 * @param gracePeriod - valid grace period of the step
 * @param jobGraceMs - `gracePeriod` of the job (ms)
 * @returns the error of the step's field `gracePeriod`, or `undefined` if it fits
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

/**
 * Returns the longest grace period of a step whose pod stops within a limit (whole seconds), or 0
 * if there is none.
 */
function longestGraceSeconds(limitSeconds: number): number {
  // A pod gets at least a quarter more, so the search takes few iterations.
  let longest = Math.max(0, Math.ceil(limitSeconds * 0.8) + 1);
  while (longest > 0 && podSeconds(`${longest}s`) > limitSeconds) longest--;
  return longest;
}
