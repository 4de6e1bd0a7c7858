/** Public names for starting and listing sweeps. */

/**
 * Id of the Temporal Schedule that the workers of a task queue maintain
 * (`HOLDFAST_SWEEP_INTERVAL`).
 */
export const sweepScheduleId = (taskQueue: string): string => `holdfast-sweep-${taskQueue}`;

/** Workflow id of a sweep started on demand. Only one per task queue can run at a time. */
export const sweepWorkflowId = (taskQueue: string): string => `sweep-${taskQueue}`;

/**
 * Outcomes of a sweep, the values of its search attribute `RunnerOutcome`; the first one that
 * applies. `failed`: an item could not be repaired. `aborted`: it would have removed too much, and
 * changed nothing. `found`: a dry run with findings. `clean`: no findings. A sweep without an
 * outcome failed as a workflow: a list could not be read, and nothing was changed.
 */
export const SWEEP_OUTCOMES = [
  'failed',
  'aborted',
  'found',
  'repaired',
  'marked',
  'clean',
] as const;
/** Outcome of a sweep. */
export type SweepOutcome = (typeof SWEEP_OUTCOMES)[number];
