/** Implements `holdfast sweep`: starts the workflow of a sweep, and waits for its report. */
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import {
  clusterTaskQueue,
  SWEEP_WORKFLOW,
  sweepWorkflowId,
  type SweepInput,
  type SweepReport,
} from '../../core/contract/index.ts';
import { sleep } from '../shared/followRunner.ts';
import { pendingActivities } from '../shared/pendingActivities.ts';
import { requestedBy } from '../shared/requestedBy.ts';
import type { Session } from '../shared/session.ts';
import { toCliError } from '../shared/temporalErrors.ts';
import { fixFor, createPollerCheck } from '../shared/unpolledQueues.ts';
import { CliError } from '../shared/exit.ts';
import type { Output } from '../shared/output.ts';

/** Interval between queries of the sweep's progress (ms). */
const REFRESH_MS = 1_000;

/**
 * Runs a sweep in a worker.
 * @returns the report, also if a list is incomplete
 * @throws CliError `failed` if no worker runs or the sweep failed; `conflict` while another
 * requested sweep is running; `unreachable`
 */
export async function sweepByWorker(
  session: Session,
  output: Output,
  input: SweepInput,
): Promise<SweepReport> {
  const { taskQueue } = session.settings;
  const workflowId = sweepWorkflowId(taskQueue);
  await requireWorker(session, taskQueue);
  const runId = await start(session, workflowId, input);
  const ui = session.link(workflowId, runId);
  output.note('started', `sweep started: ${workflowId}${ui === undefined ? '' : `  ${ui}`}`, {
    id: workflowId,
    runId,
  });
  const over = new AbortController();
  const watching = watch(session, output, workflowId, over.signal);
  try {
    return await session.client.workflow
      .getHandle<() => Promise<SweepReport>>(workflowId, runId)
      .result();
  } catch (error) {
    const report = reportOf(error);
    if (report === undefined) throw failedSweep(error, session, workflowId);
    return report;
  } finally {
    over.abort();
    await watching;
  }
}

async function requireWorker(session: Session, taskQueue: string): Promise<void> {
  const polled = createPollerCheck(session);
  const cluster = clusterTaskQueue(taskQueue);
  for (const [queue, kind] of [
    [taskQueue, 'workflow'],
    [cluster, 'activity'],
  ] as const) {
    if (await polled(queue, kind)) continue;
    throw new CliError(
      'failed',
      `no worker polls the task queue ${queue}, so the sweep would not run; ${fixFor(queue, taskQueue)}, or sweep without one ("holdfast sweep --standalone")`,
    );
  }
}

async function start(session: Session, workflowId: string, input: SweepInput): Promise<string> {
  const { taskQueue } = session.settings;
  try {
    const handle = await session.attempt(
      async (client) =>
        await client.workflow.start(SWEEP_WORKFLOW, {
          workflowId,
          taskQueue,
          args: [input],
          workflowIdConflictPolicy: 'FAIL',
          staticSummary: requestedBy(),
        }),
    );
    return handle.firstExecutionRunId;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError)
      throw new CliError(
        'conflict',
        `another sweep is running (${workflowId}); run this again when it has ended`,
        { cause: error },
      );
    throw toCliError(error, session.errorSubject(workflowId));
  }
}

/**
 * Prints the progress of the sweep, and the reason of a retry. A failed query is ignored, because
 * the next one shows the progress.
 */
async function watch(
  session: Session,
  output: Output,
  workflowId: string,
  signal: AbortSignal,
): Promise<void> {
  for (let reported: string | undefined; !signal.aborted; await sleep(REFRESH_MS, signal)) {
    const description = await session
      .attempt(async (client) => await client.workflow.getHandle(workflowId).describe())
      .catch(() => undefined);
    const [activity] =
      description === undefined ? [] : await pendingActivities(description.raw, session.converter);
    const doing = activity?.state === 'started' ? activity.progress : activity?.lastFailure;
    if (doing !== undefined && doing !== reported && !signal.aborted)
      output.note('progress', doing, { id: workflowId });
    reported = doing ?? reported;
  }
}

/** Returns the report that the failure contains. */
function reportOf(error: unknown): SweepReport | undefined {
  const cause = error instanceof WorkflowFailedError ? error.cause : undefined;
  return cause instanceof ApplicationFailure && cause.type === FAILURE_TYPES.sweepIncomplete
    ? (cause.details?.[0] as SweepReport | undefined)
    : undefined;
}

function failedSweep(error: unknown, session: Session, workflowId: string): CliError {
  if (!(error instanceof WorkflowFailedError))
    return toCliError(error, session.errorSubject(workflowId));
  return new CliError(
    'failed',
    `the sweep failed: ${error.cause?.message ?? error.message}; see the log of the worker for what it did`,
    { cause: error },
  );
}
