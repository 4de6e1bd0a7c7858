/** Activities of the `job` workflow. */
import type { JobSpec } from '../input/job.ts';

/** Activities of the `job` workflow. */
export interface JobActivities {
  /**
   * Validates the input of a job and fills in the defaults. Each step is validated as the input of
   * its runner.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitJob(input: AdmitJobInput): Promise<JobSpec>;
}

/** Input of {@link JobActivities.admitJob}. */
export interface AdmitJobInput {
  /** Input of the workflow, not validated yet. */
  readonly input: unknown;
  readonly workflowId: string;
  /** Run id of the job's first run. */
  readonly runId: string;
}
