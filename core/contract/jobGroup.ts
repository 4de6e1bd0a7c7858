/**
 * Public names of the `jobGroup` workflow, which runs a job for each revision of a change set (a
 * pull request or a branch): its workflow type, signal and query. Its signal `cancel` is that of a
 * runner: it ends the run and drops the revision that waits.
 */
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { JobInput } from './jobInput.ts';
import type { RunnerOutcome } from './runner.ts';

/** Workflow type that runs one job for the newest revision of a change set. */
export const JOB_GROUP_WORKFLOW = 'jobGroup';

/** Workflow id of one run of a job group. @param generation - 1 for the first run */
export const groupedJobId = (group: string, generation: number): string => `${group}:${generation}`;

/** Revision of a change set, and the job to run for it. */
export interface JobRevision {
  /** Commit to run the job for. */
  commit: string;
  /**
   * Time of the change according to the CI server (ISO 8601). A revision older than the newest
   * known one is ignored.
   */
  at: string;
  /** Input of the job to start for this revision. */
  job: JobInput;
  /** Whether to run the job again for a known or older revision. @default false */
  rerun?: boolean;
}

/** Status of a job group, as the query `status` returns it. */
export interface JobGroupStatus {
  /** Number of revisions accepted so far. */
  runNumber: number;
  /** Commit of the newest revision. Absent before the first one. */
  commit?: string;
  /** Run in progress. `superseded`: it is being ended in favor of a newer revision. */
  running?: { workflowId: string; superseded: boolean };
  /**
   * Outcome of the run of the newest revision. Absent until that run has ended. `aborted` if a cancel
   * came before its run.
   */
  outcome?: RunnerOutcome;
  /** Whether the newest revision waits for the previous run to end. */
  queued: boolean;
}

/** Signal with a new revision. Send it as a signal-with-start. */
export const jobRevisionSignal = defineSignal<[JobRevision]>('revision');
/** Returns the current status of a job group. */
export const jobGroupStatusQuery = defineQuery<JobGroupStatus>('status');
