/** What the workflow `job` may ask of the world. */
import type { JobSpec } from '../input/job.ts';

export interface JobActivities {
  /** Checks and completes the input of a job, each of its steps as their own lives will be. */
  admitJob(input: AdmitJobInput): Promise<JobSpec>;
}

export interface AdmitJobInput {
  readonly input: unknown;
  readonly workflowId: string;
  /** Of the job's first run. */
  readonly runId: string;
}
