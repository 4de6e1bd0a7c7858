/**
 * Name of the histogram of the time that runners spend in a phase. Workflows record it; the
 * worker's runtime sets its buckets.
 */
export const PHASE_DURATION_METRIC = 'holdfast_runner_phase_duration_seconds';

/** Upper bounds of the buckets (s), from a pod that starts immediately to a job of a day. */
export const PHASE_BUCKETS: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400,
];
