/** Reads the facts of a runner: its workflow, and its pod from the cluster while it starts. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { SEARCH_ATTRIBUTES, type RunnerStatus } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isOpen, isPaused } from '../../core/domain/workflowStatus.ts';
import type { RunnerEndFacts, RunnerFacts } from '../../core/why/facts.ts';
import { RunnerPodLogs } from '../runner/podLogs.ts';
import { describeResource } from '../shared/resource.ts';
import { RUNNER } from '../shared/resourceKind.ts';
import { getResult } from '../shared/followRunner.ts';
import { queryStatus, toRow } from '../shared/runnerRow.ts';
import type { Session } from '../shared/session.ts';
import { withTerminationDetails } from '../shared/terminationDetails.ts';
import { isUnpolled, workflowFacts } from './workflowFacts.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Maximum time to read the pod from the cluster (ms). */
const POD_TIMEOUT_MS = 5_000;
/** Phases in which the state of the pod is read, because it explains the wait. */
const STARTING: readonly string[] = ['Provisioning', 'Registering'];

/**
 * Reads the facts of a runner.
 * @param id - workflow ID, with or without `runner-`
 * @throws CliError `not_found` if there is no such runner, `usage` if the ID is invalid, or
 * `unreachable` if Temporal does not respond
 */
export async function readRunner(session: Session, env: Env, id: string): Promise<RunnerFacts> {
  const description = await describeResource(session, RUNNER, id);
  const { workflowId } = description;
  const facts = await workflowFacts(session, description);
  if (!isOpen(description.status)) return { ...facts, end: await readEnd(session, description) };
  // A workflow that is paused or has no worker cannot answer a query.
  if (isPaused(description.status) || isUnpolled(facts, description)) return facts;
  const status = await queryStatus(session, workflowId);
  if (status === undefined || !STARTING.includes(status.phase))
    return { ...facts, ...omitUndefined({ status }) };
  return { ...facts, status, ...(await readPod(env, description, status)) };
}

async function readEnd(
  session: Session,
  description: WorkflowExecutionDescription,
): Promise<RunnerEndFacts> {
  const [recorded] = await withTerminationDetails(session, [toRow(description)]);
  const { workflowId, runId } = description;
  return recorded?.end ?? (await getResult(session, workflowId, runId));
}

/** Reads the pod. If this machine cannot reach the cluster, the result says so. */
async function readPod(
  env: Env,
  description: WorkflowExecutionDescription,
  { pod: name, attempt }: RunnerStatus,
): Promise<Pick<RunnerFacts, 'pod' | 'podUnread'>> {
  const { workflowId, runId, raw, typedSearchAttributes } = description;
  const place = typedSearchAttributes.get(SEARCH_ATTRIBUTES.place);
  if (place === undefined || name === undefined) return {};
  const firstRunId = raw.workflowExecutionInfo?.firstRunId || runId;
  try {
    const logs = await RunnerPodLogs.open(env, { workflowId, firstRunId, place });
    try {
      const pod = await withDeadline(logs.readPod(attempt));
      return pod === undefined ? { podUnread: `pod ${name} not found in ${place}` } : { pod };
    } finally {
      await logs.close();
    }
  } catch (error) {
    return { podUnread: errorMessage(error) };
  }
}

async function withDeadline<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`the cluster did not respond within ${POD_TIMEOUT_MS / 1_000} s`);
    timer = setTimeout(() => reject(error), POD_TIMEOUT_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
