/** Public names of the runs of one job for one change set (a pull request, a branch): the workflow type, its signal and its query. */
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { JobInput } from './jobInput.ts';
import type { RunnerOutcome } from './runner.ts';

export const JOB_GROUP_WORKFLOW = 'jobGroup';

/** Workflow id of a run. @param generation - 1 for the first */
export const groupedJobId = (group: string, generation: number): string => `${group}:${generation}`;

/** One version of the change set, and what is run for it. */
export interface JobRevision {
  commit: string;
  /** When the change set came to be so, by the CI server's clock (ISO 8601): what comes later and was earlier is no news. */
  at: string;
  job: JobInput;
  /** Runs it once more, and whatever its age. @default false */
  rerun?: boolean;
}

export interface JobGroupStatus {
  /** Counts the versions that were taken. */
  runNumber: number;
  /** The newest. */
  commit?: string;
  /** The run that is under way. `superseded`: it is being ended for a newer one. */
  running?: { workflowId: string; superseded: boolean };
  /** What has become of the newest, once its run is over. */
  outcome?: RunnerOutcome;
  /** The newest waits until the run before it is over. */
  queued: boolean;
}

/** A version has come: send it with start. */
export const jobRevisionSignal = defineSignal<[JobRevision]>('revision');
export const jobGroupStatusQuery = defineQuery<JobGroupStatus>('status');
