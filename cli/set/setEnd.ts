/** Reads the end of a set, or waits for it. */
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, TerminatedFailure } from '@temporalio/common';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import { sleep } from '../shared/followRunner.ts';
import type { Session } from '../shared/session.ts';
import { setError } from './setClient.ts';
import { isConnectionLoss } from '../shared/temporalErrors.ts';

/**
 * End of a set. `ended`: all its runners have ended. With the other outcomes some may still run.
 */
export interface SetEnd {
  readonly outcome: 'ended' | 'cancelled' | 'terminated' | 'failed';
  readonly message: string;
}

/** Interval between attempts to reach Temporal when it does not answer (ms). */
const RECONNECT_MS = 2_000;

/**
 * Returns the end of a set, or `undefined` while it runs.
 * @throws CliError
 */
export async function getSetEnd(
  session: Session,
  workflowId: string,
  runId: string,
): Promise<SetEnd | undefined> {
  try {
    const { status } = await session.attempt((client) =>
      client.workflow.getHandle(workflowId, runId).describe(),
    );
    if (isOpen(status) || status.name === 'CONTINUED_AS_NEW') return undefined;
    return await session.attempt((client) =>
      endOf(() => client.workflow.getHandle(workflowId, runId).result()),
    );
  } catch (error) {
    throw setError(error, session, workflowId);
  }
}

/**
 * Waits without a timeout until the set has ended. Calls that Temporal does not answer are retried.
 * @throws CliError
 */
export async function waitForSetEnd(
  session: Session,
  workflowId: string,
  runId: string,
): Promise<SetEnd> {
  const forever = new AbortController().signal;
  for (;;) {
    try {
      return await endOf(() => session.client.workflow.getHandle(workflowId, runId).result());
    } catch (error) {
      if (!isConnectionLoss(error)) throw setError(error, session, workflowId);
      await sleep(RECONNECT_MS, forever);
    }
  }
}

async function endOf(result: () => Promise<unknown>): Promise<SetEnd> {
  try {
    await result();
    return { outcome: 'ended', message: 'all its runners have ended' };
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { cause } = error;
    if (cause instanceof CancelledFailure)
      return { outcome: 'cancelled', message: 'it was cancelled, and all its runners have ended' };
    if (cause instanceof TerminatedFailure)
      return {
        outcome: 'terminated',
        message:
          'the workflow was terminated; its runners may still run, see "holdfast runner list"',
      };
    if (cause instanceof ApplicationFailure) return { outcome: 'failed', message: cause.message };
    return { outcome: 'failed', message: cause?.message ?? error.message };
  }
}
