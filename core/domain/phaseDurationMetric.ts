/** The histogram of how long runners are in a phase: written by workflows, its buckets set by the worker's runtime. */
export const PHASE_DURATION_METRIC = 'holdfast_runner_phase_duration_seconds';

/** Upper bounds (s): from a pod that is up at once to a job of a day. */
export const PHASE_BUCKETS: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400,
];
