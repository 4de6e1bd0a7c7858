/** Public names of how sweeps are started and listed. */

/** Id of the Schedule that the workers of a task queue keep (`HOLDFAST_SWEEP_INTERVAL`). */
export const sweepScheduleId = (taskQueue: string): string => `holdfast-sweep-${taskQueue}`;

/** Workflow id of a sweep that somebody asks for: one at a time for each task queue. */
export const sweepWorkflowId = (taskQueue: string): string => `sweep-${taskQueue}`;

/**
 * What came of a sweep, the value of its search attribute `RunnerOutcome`; the first that holds. `failed`: an item could not be repaired.
 * `aborted`: it would have condemned too much, and touched nothing. `found`: a dry run, and something disagrees. `clean`: nothing did.
 * A sweep without one failed as a workflow: a list could not be had, and nothing was touched.
 */
export const SWEEP_OUTCOMES = [
  'failed',
  'aborted',
  'found',
  'repaired',
  'marked',
  'clean',
] as const;
export type SweepOutcome = (typeof SWEEP_OUTCOMES)[number];
