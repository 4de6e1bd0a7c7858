/** Reads the end of a workflow without a verdict from the last event of its history. */
import pMap from 'p-map';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { failureMessage } from './encodedFields.ts';
import { CliError } from './exit.ts';
import type { Session } from './session.ts';
import type { RunnerEnd } from './followRunner.ts';
import type { RunnerRow } from './runnerRow.ts';
import { sweepResults } from '../runner/sweepResults.ts';

/**
 * Statuses of a workflow that ended without a verdict. The workflow of a runner fails only for an
 * invalid input, or a defect.
 */
const WITHOUT_VERDICT: ReadonlySet<string> = new Set(['TERMINATED', 'FAILED', 'TIMED_OUT']);

/** Fields of the event that are read here. Missing values are empty strings. */
interface LastEvent {
  readonly workflowExecutionTerminatedEventAttributes?: {
    readonly identity?: string | null;
    readonly reason?: string | null;
  } | null;
  readonly workflowExecutionFailedEventAttributes?: object | null;
  readonly workflowExecutionTimedOutEventAttributes?: object | null;
}

/** Maximum number of histories read concurrently. */
const AT_ONCE = 10;

/**
 * Adds to each row without a verdict the end of its workflow, and the action of a sweep on its pod.
 * @throws CliError `unreachable`
 */
export async function withTerminationDetails<T extends RunnerRow>(
  session: Session,
  rows: readonly T[],
): Promise<(T & { readonly end?: RunnerEnd })[]> {
  const ends = await pMap(rows, async (row) => await readRecordedEnd(session, row), {
    concurrency: AT_ONCE,
  });
  const swept = await sweepResults(
    session,
    rows.filter((_, index) => ends[index] !== undefined),
  );
  return rows.map((row, index) => {
    const end = ends[index];
    return end === undefined
      ? row
      : { ...row, end: { ...end, ...omitUndefined({ sweep: swept.get(row.runId) }) } };
  });
}

/**
 * Reads the end of a workflow.
 * @returns `undefined` if the workflow is running, has a verdict, or was deleted
 */
async function readRecordedEnd(
  session: Session,
  { id: workflowId, runId, status }: RunnerRow,
): Promise<RunnerEnd | undefined> {
  if (!WITHOUT_VERDICT.has(status)) return undefined;
  const request = {
    namespace: session.settings.namespace,
    execution: { workflowId, runId },
    maximumPageSize: 1,
  };
  try {
    const { history } = await session.call(
      async (client) => await client.workflowService.getWorkflowExecutionHistoryReverse(request),
      { workflowId },
    );
    const last = history?.events?.[0] ?? {};
    return toRecordedEnd(
      last,
      await failureMessage(
        session.converter,
        last.workflowExecutionFailedEventAttributes?.failure ?? {},
      ),
    );
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/**
 * Returns the end for a status.
 * @param reason - message of the failure, if there is one
 */
export function toRecordedEnd(last: LastEvent, reason?: string): RunnerEnd | undefined {
  const {
    workflowExecutionTerminatedEventAttributes: terminated,
    workflowExecutionFailedEventAttributes: failed,
    workflowExecutionTimedOutEventAttributes: timedOut,
  } = last;
  if (terminated)
    return {
      outcome: 'terminated',
      message: sentence('the workflow was terminated', terminated.identity, terminated.reason),
      ...omitUndefined({ terminatedBy: terminated.identity || undefined }),
    };
  if (failed) return { outcome: 'failed', message: sentence('the workflow failed', '', reason) };
  return timedOut ? { outcome: 'timed_out', message: 'the workflow timed out' } : undefined;
}

const sentence = (
  what: string,
  by: string | null | undefined,
  reason: string | null | undefined,
): string => `${what}${by ? ` by ${by}` : ''}${reason ? `: ${reason}` : ''}`;
