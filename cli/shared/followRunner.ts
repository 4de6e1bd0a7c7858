/** Reads the end of a runner or job, or waits for it. */
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure, TerminatedFailure, TimeoutFailure } from '@temporalio/common';
import type { JobResult, RunnerResult } from '../../core/contract/index.ts';
import { EXIT } from './exit.ts';
import type { Session } from './session.ts';
import { isConnectionLoss, toCliError } from './temporalErrors.ts';

/** Verdict of a runner or job, or its replacement for a workflow without one. */
export interface RunnerEnd
  extends
    Partial<Omit<RunnerResult, 'outcome' | 'cause' | 'message'>>,
    Partial<Pick<JobResult, 'steps' | 'log'>> {
  /** One of the outcomes, or `cancelled`, `terminated`, `failed` (the workflow itself failed), `timed_out`. */
  readonly outcome: string;
  readonly cause?: string;
  readonly message: string;
  /** Identity of the client that terminated the workflow, such as `4711@host`, if known. */
  readonly terminatedBy?: string;
  /** Action of a sweep on the remaining pod. */
  readonly sweep?: string;
}

/** Interval between attempts to reach Temporal when it does not answer (ms). */
const RECONNECT_MS = 2_000;

/**
 * Returns the end of a runner that has ended.
 * @throws CliError
 */
export function getResult(
  session: Session,
  workflowId: string,
  runId?: string,
): Promise<RunnerEnd> {
  return session.call(
    (client) =>
      endOf(() =>
        client.workflow.getHandle<() => Promise<RunnerResult>>(workflowId, runId).result(),
      ),
    { workflowId },
  );
}

/**
 * Waits for the end without a timeout. Calls that Temporal does not answer are retried.
 * @param runId - first run to follow. Runs that continue it are followed, too
 * @throws CliError `not_found`, `usage`; the reason of the signal if it is aborted
 */
export async function waitForResult(
  session: Session,
  workflowId: string,
  runId: string,
  signal: AbortSignal,
  onConnection: (state: 'lost' | 'retrying') => void = () => {},
): Promise<RunnerEnd> {
  for (;;) {
    signal.throwIfAborted();
    const { client } = session;
    try {
      const end = await client.connection.withAbortSignal(signal, () =>
        endOf(() =>
          client.workflow.getHandle<() => Promise<RunnerResult>>(workflowId, runId).result(),
        ),
      );
      return end;
    } catch (error) {
      signal.throwIfAborted();
      if (!isConnectionLoss(error)) throw toCliError(error, session.errorSubject(workflowId));
      onConnection('lost');
      await sleep(RECONNECT_MS, signal);
      onConnection('retrying');
    }
  }
}

/** Resolves after `ms`, or earlier if the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}

/** Returns the exit status for an end. */
export const exitStatusOf = (end: RunnerEnd): number =>
  end.outcome === 'succeeded' ? EXIT.ok : EXIT.failed;

async function endOf(result: () => Promise<RunnerResult>): Promise<RunnerEnd> {
  try {
    return checked(await result());
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { cause } = error;
    if (cause instanceof CancelledFailure)
      return {
        outcome: 'cancelled',
        cause: 'cancelled',
        message: cause.message || 'the workflow was cancelled',
      };
    if (cause instanceof TerminatedFailure)
      return {
        outcome: 'terminated',
        message: `the workflow was terminated${cause.message ? `: ${cause.message}` : ''}; its objects may be left`,
      };
    if (cause instanceof TimeoutFailure)
      return {
        outcome: 'timed_out',
        message: 'the workflow timed out; its objects may be left',
      };
    return {
      outcome: 'failed',
      message: `the workflow failed: ${cause?.message ?? error.message}`,
    };
  }
}

/**
 * Validates a result. It may come from any workflow, so an unexpected type must not count as
 * success.
 */
function checked(result: unknown): RunnerEnd {
  if (isEnd(result)) return result;
  return { outcome: 'unknown', message: 'the workflow ended without a verdict' };
}

function isEnd(value: unknown): value is RunnerEnd {
  return (
    value !== null &&
    typeof value === 'object' &&
    'outcome' in value &&
    typeof value.outcome === 'string' &&
    'message' in value &&
    typeof value.message === 'string'
  );
}
