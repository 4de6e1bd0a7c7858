/** Implements `holdfast job cancel`. */
import { cancelSignal, type CancelMode } from '../../core/contract/index.ts';
import { waitForResult, type RunnerEnd } from '../shared/followRunner.ts';
import { requestedBy } from '../shared/requestedBy.ts';
import type { Session } from '../shared/session.ts';
import type { Awaited, IdResult } from '../shared/forEachId.ts';
import { jobError } from './jobClient.ts';
import { describeResource } from '../shared/resource.ts';
import { JOB } from '../shared/resourceKind.ts';

/** Options of `holdfast job cancel`. */
export interface CancelOptions {
  readonly mode: CancelMode;
  readonly reason?: string;
  /**
   * Whether to wait until the job has ended.
   * @default false
   */
  readonly wait?: boolean;
}

/**
 * Requests the cancellation of a job. With `wait` it has failed if the job ends failed or errored.
 * @throws CliError
 */
export async function cancelJob(
  session: Session,
  id: string,
  { mode, reason = `cancel ${requestedBy()}`, wait = false }: CancelOptions,
): Promise<IdResult | Awaited> {
  const { workflowId, runId } = await describeResource(session, JOB, id);
  const requested = { id: workflowId, runId, mode };
  try {
    await session.attempt((client) =>
      client.workflow.getHandle(workflowId).signal(cancelSignal, { mode, reason }),
    );
  } catch (error) {
    throw jobError(error, session, workflowId);
  }
  if (!wait) return { document: requested, lines: [`${workflowId}: cancel (${mode}) sent`] };
  return async () => {
    const end = await waitForResult(session, workflowId, runId, new AbortController().signal);
    const outcome = [end.outcome, end.cause].filter(Boolean).join('/');
    return {
      document: { ...requested, end },
      lines: [`${workflowId}: ${outcome}: ${end.message}`],
      failed: !isCancelledWell(end),
    };
  };
}

/** Whether a job that was cancelled ended as expected. True if its end is unknown. */
export const isCancelledWell = (end: RunnerEnd | undefined): boolean =>
  end === undefined || ['succeeded', 'aborted', 'cancelled'].includes(end.outcome);
