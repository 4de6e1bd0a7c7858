/** Implements `holdfast job cancel --change-set`. */
import type { WorkflowExecutionInfo } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/common';
import pMap from 'p-map';
import {
  JOB_GROUP_WORKFLOW,
  JOB_WORKFLOW,
  SEARCH_ATTRIBUTES,
  cancelSignal,
  type CancelRequest,
} from '../../core/contract/index.ts';
import {
  parseChangeSetSelector,
  parseJobGroupId,
  selectsChangeSet,
  selectsJob,
  type ChangeSetSelector,
} from '../../core/domain/changeSet.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { quoteLiteral } from '../../core/domain/visibility.ts';
import { OPEN_FILTER } from '../../core/domain/workflowStatus.ts';
import { decodeFirstPayload } from '../shared/encodedFields.ts';
import { CliError, EXIT } from '../shared/exit.ts';
import { waitForResult, type RunnerEnd } from '../shared/followRunner.ts';
import type { Output } from '../shared/output.ts';
import { requestedBy } from '../shared/requestedBy.ts';
import type { Session } from '../shared/session.ts';
import { isCancelledWell, type CancelOptions } from './cancelJob.ts';
import { jobError } from './jobClient.ts';

/** Maximum concurrent requests. */
const CONCURRENCY = 10;
/** Time limit for reading a whole list (ms). */
const LIST_TIMEOUT_MS = 60_000;

/**
 * Parses the value of `--change-set`.
 * @throws CliError `usage`
 */
export function parseSelector(text: string): ChangeSetSelector {
  const selector = parseChangeSetSelector(text);
  if (selector === undefined)
    throw new CliError(
      'usage',
      `--change-set: must be a pull request (acme/web#7) or a branch (acme/web@main), got "${text}"`,
    );
  return selector;
}

/** Job that was cancelled. */
interface CancelledJob {
  readonly id: string;
  readonly runId: string;
  readonly end?: RunnerEnd;
}

/**
 * Requests the cancellation of all jobs of a change set, and drops the versions that wait.
 * @returns the exit status. With `wait`, 1 if a job ends failed or errored
 * @throws CliError
 */
export async function cancelChangeSet(
  session: Session,
  output: Output,
  selector: ChangeSetSelector,
  { mode, reason = `cancel ${requestedBy()}`, wait = false }: CancelOptions,
): Promise<number> {
  const request = { mode, reason };
  // Cancel groups first: a cancelled group starts no other run.
  const groups = (await listRunning(session, JOB_GROUP_WORKFLOW)).filter(({ workflowId }) => {
    const changeSet = parseJobGroupId(workflowId);
    return changeSet !== undefined && selectsChangeSet(selector, changeSet);
  });
  await pMap(groups, ({ workflowId }) => cancel(session, workflowId, request), {
    concurrency: CONCURRENCY,
  });
  const jobs = await pMap(
    await selectJobs(session, selector),
    async ({ workflowId, runId }): Promise<CancelledJob> => {
      await cancel(session, workflowId, request);
      const end = wait
        ? await waitForResult(session, workflowId, runId, new AbortController().signal)
        : undefined;
      return { id: workflowId, runId, ...omitUndefined({ end }) };
    },
    { concurrency: wait ? Infinity : CONCURRENCY },
  );
  output.result(
    { mode, groups: groups.map(({ workflowId }) => workflowId), jobs },
    jobs.length === 0 ? ['no running job for this change set'] : jobs.map((job) => line(job, mode)),
  );
  return jobs.every(({ end }) => isCancelledWell(end)) ? EXIT.ok : EXIT.failed;
}

function line({ id, end }: CancelledJob, mode: string): string {
  if (end === undefined) return `${id}: cancel (${mode}) sent`;
  return `${id}: ${[end.outcome, end.cause].filter(Boolean).join('/')}: ${end.message}`;
}

async function listRunning(session: Session, type: string): Promise<WorkflowExecutionInfo[]> {
  return await session.call(
    async (client) => {
      const rows: WorkflowExecutionInfo[] = [];
      const query = `WorkflowType = ${quoteLiteral(type)} AND ${OPEN_FILTER}`;
      for await (const row of client.workflow.list({ query, pageSize: 1_000 })) rows.push(row);
      return rows;
    },
    { timeoutMs: LIST_TIMEOUT_MS },
  );
}

/** Lists the running jobs of a change set: runs of a group by their ID, others by their input. */
async function selectJobs(
  session: Session,
  selector: ChangeSetSelector,
): Promise<WorkflowExecutionInfo[]> {
  const selected = await pMap(
    await listRunning(session, JOB_WORKFLOW),
    async (job) => {
      const changeSet = parseJobGroupId(job.workflowId.replace(/:\d+$/, ''));
      if (changeSet !== undefined) return selectsChangeSet(selector, changeSet) ? [job] : [];
      const scope = job.typedSearchAttributes.get(SEARCH_ATTRIBUTES.scope);
      if (scope?.toLowerCase() !== selector.repository.toLowerCase()) return [];
      return selectsJob(selector, scope, await readSource(session, job)) ? [job] : [];
    },
    { concurrency: CONCURRENCY },
  );
  return selected.flat();
}

/** Reads the field `source` of a job's input from its history, which needs no worker. */
async function readSource(
  session: Session,
  { workflowId, runId }: WorkflowExecutionInfo,
): Promise<object> {
  const { history } = await session.call(
    async (client) =>
      await client.workflowService.getWorkflowExecutionHistory({
        namespace: session.settings.namespace,
        execution: { workflowId, runId },
        maximumPageSize: 1,
      }),
  );
  const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
  const first = await decodeFirstPayload(session.converter, started?.input?.payloads);
  const input =
    first === undefined
      ? undefined
      : session.converter.payloadConverter.fromPayload<unknown>(first);
  return isObject(input) && isObject(input['source']) ? input['source'] : {};
}

/**
 * Cancels a job or group, unless it has ended.
 * @throws CliError
 */
async function cancel(session: Session, workflowId: string, request: CancelRequest): Promise<void> {
  try {
    await session.attempt((client) =>
      client.workflow.getHandle(workflowId).signal(cancelSignal, request),
    );
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw jobError(error, session, workflowId);
  }
}
