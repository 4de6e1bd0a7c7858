/** Reads the state of a runner from its workflow if a worker answers, otherwise from visibility. */
import type { WorkflowExecutionInfo } from '@temporalio/client';
import { SEARCH_ATTRIBUTES, statusQuery, type RunnerStatus } from '../../core/contract/index.ts';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import type { Session } from './session.ts';
import { toCliError } from './temporalErrors.ts';

/** Fields of a runner in visibility. Times in ISO 8601. */
export interface RunnerRow {
  readonly id: string;
  readonly runId: string;
  /** Status in Temporal: RUNNING, COMPLETED, FAILED, CANCELLED, TERMINATED, … */
  readonly status: string;
  /** Phase of the runner. Absent if it was terminated, because its last phase no longer applies. */
  readonly phase?: string;
  readonly scope?: string;
  readonly set?: string;
  readonly name?: string;
  /**
   * Outcome. Without a verdict it is Temporal's status in lower case, such as `terminated`. Absent
   * while the runner runs.
   */
  readonly outcome?: string;
  readonly cause?: string;
  readonly startedAt: string;
  readonly endedAt?: string;
}

/** Maps an entry of visibility, or a description, to a row. */
export function toRow(
  info: Pick<
    WorkflowExecutionInfo,
    'workflowId' | 'runId' | 'status' | 'startTime' | 'closeTime' | 'typedSearchAttributes'
  >,
): RunnerRow {
  const { phase, scope, set, name, outcome, cause } = SEARCH_ATTRIBUTES;
  const attributes = { phase, scope, set, name, outcome, cause };
  const values: Record<string, string> = {};
  for (const [field, key] of Object.entries(attributes)) {
    const value = info.typedSearchAttributes.get(key);
    if (value !== undefined) values[field] = value;
  }
  if (!isOpen(info.status)) {
    if (values['phase'] !== 'Gone') delete values['phase'];
    values['outcome'] ??= info.status.name.toLowerCase();
  }
  return {
    id: info.workflowId,
    runId: info.runId,
    status: info.status.name,
    ...values,
    startedAt: info.startTime.toISOString(),
    ...(info.closeTime === undefined ? {} : { endedAt: info.closeTime.toISOString() }),
  };
}

/** Timeout of the status query, after which no worker is assumed to run (ms). */
export const QUERY_TIMEOUT_MS = 3_000;

/**
 * Queries the status of a runner or job from its workflow.
 * @returns `undefined` if no worker answers in time
 * @throws CliError `not_found`, `usage`
 */
export async function queryStatus<Status = RunnerStatus>(
  session: Session,
  workflowId: string,
  timeoutMs: number = QUERY_TIMEOUT_MS,
): Promise<Status | undefined> {
  try {
    return await session.attempt(
      (client) => client.workflow.getHandle(workflowId).query<Status>(statusQuery.name),
      timeoutMs,
    );
  } catch (error) {
    const known = toCliError(error, session.errorSubject(workflowId));
    // Temporal answers FAILED_PRECONDITION immediately if no worker has polled recently. Otherwise
    // the deadline passes. A new workflow that no worker has processed cannot answer either.
    if (known.code === 'not_found' || known.code === 'usage') throw known;
    return undefined;
  }
}
