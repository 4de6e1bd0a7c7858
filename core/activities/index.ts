/**
 * Interface between workflows and activities: activity types, inputs, results and failure types.
 */
import type { JobActivities } from './job.ts';
import type { RerunActivities } from './rerun.ts';
import type { RunnerActivities } from './runner.ts';
import type { SetActivities } from './runnerSet.ts';
import type { ScaleSetActivities } from './scaleSet.ts';
import type { SweepActivities } from './sweep.ts';

export * from './failureTypes.ts';
export * from './job.ts';
export * from './retryBackoff.ts';
export * from './rerun.ts';
export * from './runner.ts';
export * from './runnerSet.ts';
export * from './scaleSet.ts';
export * from './sweep.ts';
export * from './tracing.ts';

/**
 * All activities of Holdfast. All are idempotent: killing a worker between a side effect and its
 * completion does not change the final result.
 */
export interface HoldfastActivities
  extends
    RunnerActivities,
    JobActivities,
    RerunActivities,
    SetActivities,
    ScaleSetActivities,
    SweepActivities {}
