/** What the workflows `job` and `jobGroup` may ask of the world. */
import type { CommitReport, ReportTaken } from '../domain/commitReport.ts';
import type { JobSpec } from '../input/job.ts';
import type { ReportSpec } from '../input/jobReport.ts';

export interface JobActivities {
  /** Checks and completes the input of a job, each of its steps as their own lives will be. */
  admitJob(input: AdmitJobInput): Promise<JobSpec>;
  /** Where the runs of a job are reported; asks nobody. */
  admitReport(input: AdmitReportInput): Promise<ReportSpec | ReportRefusal>;
  /** Tells the CI server how a run is. A try that Temporal has given up sends nothing any more, and one that is called off is awaited. */
  reportStatus(input: ReportStatusInput): Promise<ReportTaken>;
}

export interface AdmitJobInput {
  readonly input: unknown;
  readonly workflowId: string;
  /** Of the job's first run. */
  readonly runId: string;
}

export interface AdmitReportInput {
  /** Of its input, as it was handed in. */
  readonly job: Readonly<Partial<Record<'name' | 'repository' | 'credential', unknown>>>;
  readonly commit: string;
}

export interface ReportRefusal {
  /** Why nothing is reported. */
  readonly refused: string;
}

/** The context is without its prefix, and the link is the worker's to make. */
export interface ReportStatusInput extends Omit<CommitReport, 'link'> {
  readonly credential: string;
}
