/** Finds and queries jobs, and explains errors about them. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/common';
import { isOpen, isPaused } from '../../core/domain/workflowStatus.ts';
import type { JobStatus } from '../../core/contract/index.ts';
import { getResult, type RunnerEnd } from '../shared/followRunner.ts';
import { queryStatus } from '../shared/runnerRow.ts';
import { CliError } from '../shared/exit.ts';
import type { Session } from '../shared/session.ts';
import { toCliError } from '../shared/temporalErrors.ts';

/** Status of a job, and its end. */
export interface JobSnapshot {
  /** Status. Absent if no worker answers. */
  readonly job?: Pick<JobStatus, 'steps' | 'log'> & Partial<JobStatus>;
  /** End of the job. Absent while it runs. */
  readonly end?: RunnerEnd;
}

/**
 * Reads a job. A workflow that ended without a verdict (for example, a terminated one) is queried
 * for its progress.
 * @throws CliError
 */
export async function readJob(
  session: Session,
  { workflowId, runId, status }: WorkflowExecutionDescription,
): Promise<JobSnapshot> {
  // A paused workflow rejects queries.
  if (isPaused(status)) return {};
  if (isOpen(status)) return withJob(await queryStatus<JobStatus>(session, workflowId));
  const end = await getResult(session, workflowId, runId);
  const { steps, log, ...verdict } = end;
  if (steps !== undefined && log !== undefined) return { job: { steps, log }, end: verdict };
  // No step ran if the input was invalid.
  return {
    ...(end.outcome === 'failed' ? {} : withJob(await queryStatus<JobStatus>(session, workflowId))),
    end,
  };
}

const withJob = (job: JobStatus | undefined): JobSnapshot => (job === undefined ? {} : { job });

/** Maps an error of the client to an error about a job. */
export function jobError(error: unknown, session: Session, workflowId: string): CliError {
  if (error instanceof WorkflowExecutionAlreadyStartedError) {
    return new CliError(
      'conflict',
      `job ${workflowId} is already running; see it with "holdfast job get ${workflowId}", or choose another --id`,
      { cause: error },
    );
  }
  if (error instanceof WorkflowNotFoundError)
    return new CliError(
      'not_found',
      `job ${workflowId} has already ended; see it with "holdfast job get ${workflowId}"`,
      { cause: error },
    );
  return toCliError(error, session.errorSubject(workflowId));
}

/** Text of the error for a query that no worker answered in time. */
export const NO_WORKER =
  'no worker answered within 3 s; check that a worker runs ("holdfast worker")';
