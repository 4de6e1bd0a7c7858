/** Starts, drains and lists the runners of sets, with the client of the Worker that runs the activity. */
import { activityInfo, getClient } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowUpdateStage, isGrpcServiceError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { z } from 'zod';
import { RunnerRefusedError, type RunnerStart, type RunnerWorkflows } from '../activities/ports.ts';
import { RUNNER_LEAVES_ALREADY, RUNNER_WORKFLOW, SEARCH_ATTRIBUTES, cancelSignal, drainUpdate, SET_COVER_MEMO, SET_RUNNER_MEMO, setWorkflowId, type RunnerPhase } from '../core/contract/index.ts';
import { workflowIdOfRunner } from '../core/domain/setRunnerNames.ts';
import { chooseSet, type CoveringSet } from '../core/domain/jobRouting.ts';
import { quoted, runningRunners, runningSets } from './visibility.ts';
import type { CiJob, Scope } from '../core/domain/ciServer.ts';
import type { ListedRunner } from '../core/calls/index.ts';

/** gRPC codes of a request that is wrong in itself: invalid argument, not found (the namespace), permission denied, failed precondition, unauthenticated. */
const FINAL_CODES: ReadonlySet<number> = new Set([3, 5, 7, 9, 16]);
const DRAIN_DEADLINE_MS = 10_000;

const runnerMemo = z.object({ generation: z.string(), ephemeral: z.boolean(), slot: z.number().optional() });
const coverMemo = z.object({ labels: z.array(z.string()), scope: z.string(), scopeKind: z.enum(['organization', 'repository', 'enterprise']) });

export function createRunnerWorkflows(): RunnerWorkflows {
  return { start, drain, list, jobsOf };
}

async function start({ workflowId, set, input, memo }: RunnerStart): Promise<void> {
  try {
    await getClient().workflow.start(RUNNER_WORKFLOW, {
      workflowId,
      taskQueue: activityInfo().taskQueue,
      args: [input],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      memo: { [SET_RUNNER_MEMO]: memo },
      // From the start, so that no list of the set's runners misses it.
      typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.set, value: set }],
      staticSummary: `runner of the set ${set}`,
    });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return;
    const cause = error instanceof Error && isGrpcServiceError(error.cause) ? error.cause : error;
    if (isGrpcServiceError(cause) && FINAL_CODES.has(cause.code)) throw new RunnerRefusedError(`Temporal refused the runner: ${cause.details}`, { cause: error });
    throw error;
  }
}

async function drain(workflowId: string, reason: string): Promise<'draining' | 'gone'> {
  const client = getClient();
  const handle = client.workflow.getHandle(workflowId);
  try {
    await client.withDeadline(Date.now() + DRAIN_DEADLINE_MS, async () => await handle.startUpdate(drainUpdate.name, { args: [{ reason }], updateId: 'drained-by-its-set', waitForStage: WorkflowUpdateStage.ACCEPTED }));
    return 'draining';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'gone';
    if (isRefusal(error, RUNNER_LEAVES_ALREADY)) return 'draining';
    if (!(error instanceof WorkflowUpdateFailedError || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)) throw error;
  }
  // No worker takes the runner's tasks now, or it is of another version and knows no such update: a signal is kept until one does.
  try {
    await handle.signal(cancelSignal, { mode: 'drain', reason });
    return 'draining';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'gone';
    throw error;
  }
}

/** Did the workflow itself refuse, for this reason? The SDK refuses, too: an update that finds no handler. */
function isRefusal(error: unknown, type: string): boolean {
  return error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure && error.cause.type === type;
}

async function list(set: string): Promise<ListedRunner[]> {
  const runners: ListedRunner[] = [];
  const query = `${runningRunners(activityInfo().taskQueue)} AND ${SEARCH_ATTRIBUTES.set.name} = ${quoted(set)}`;
  for await (const { workflowId, startTime, typedSearchAttributes, memo } of getClient().workflow.list({ query, pageSize: 1_000 })) {
    const { generation, ephemeral, slot } = runnerMemo.safeParse(memo?.[SET_RUNNER_MEMO]).data ?? {};
    const runnerName = typedSearchAttributes.get(SEARCH_ATTRIBUTES.name);
    runners.push({
      workflowId,
      phase: (typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase) ?? 'Requested') as RunnerPhase,
      startedAt: startTime.getTime(),
      ...(runnerName === undefined ? {} : { runnerName }),
      ...(generation === undefined ? {} : { generation }),
      ...(ephemeral === undefined ? {} : { ephemeral }),
      ...(slot === undefined ? {} : { slot }),
    });
  }
  return runners;
}

async function jobsOf({ set, taskQueue, scope }: { set: string; taskQueue: string; scope: Scope }, jobs: readonly CiJob[]): Promise<CiJob[]> {
  if (jobs.length === 0) return [];
  const sets: CoveringSet[] = [];
  for await (const { workflowId, memo } of getClient().workflow.list({ query: runningSets(taskQueue), pageSize: 1_000 })) {
    const cover = coverMemo.safeParse(memo?.[SET_COVER_MEMO]).data;
    if (cover !== undefined) sets.push({ workflowId, cover });
  }
  const enterprise = scope.kind === 'enterprise' ? scope.name : undefined;
  return jobs.filter((job) => {
    if (job.runnerName !== undefined && workflowIdOfRunner(set, job.runnerName) !== undefined) return true;
    return chooseSet({ repository: job.repository, labels: [...job.labels] }, enterprise, sets)?.workflowId === setWorkflowId(set);
  });
}
