/** Runner sets of the benchmarks. */
import { setTimeout as delay } from 'node:timers/promises';
import { QueryNotRegisteredError, type Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import {
  SetNotAdmittedError,
  queryWholeSetStatus,
} from '../../activities/runnerSet/querySetStatus.ts';
import {
  RUNNER_SET_WORKFLOW,
  setWorkflowId,
  type RunnerSetInput,
  type RunnerSetStatus,
} from '../../core/contract/index.ts';
import { SETS_PRIORITY_KEY, SET_TASK_TIMEOUT_MS } from '../../core/domain/setPriority.ts';
import { ORGANIZATION } from './runners.ts';
import type { BenchEnvironment } from './world.ts';

const { TimeoutType, WorkflowTaskFailedCause } = proto.temporal.api.enums.v1;

/**
 * Starts a set.
 * @returns its name, which is also its label
 */
export async function startSet(
  { client, taskQueue }: BenchEnvironment,
  suffix: string,
  more: Partial<RunnerSetInput>,
): Promise<string> {
  const name = `${taskQueue}-${suffix}`;
  const input: RunnerSetInput = {
    name,
    template: { organization: ORGANIZATION, labels: ['self-hosted', name] },
    ...more,
  };
  await client.workflow.start(RUNNER_SET_WORKFLOW, {
    workflowId: setWorkflowId(name),
    taskQueue,
    args: [input],
    workflowTaskTimeout: SET_TASK_TIMEOUT_MS,
    priority: { priorityKey: SETS_PRIORITY_KEY },
  });
  await untilAdmitted(client, name); // lists then contain its routing
  return name;
}

/** Waits until the input of a set is admitted. Before, it does not answer queries. */
async function untilAdmitted(client: Client, name: string): Promise<void> {
  for (;;) {
    try {
      return void (await statusOf(client, name));
    } catch (error) {
      if (!(error instanceof QueryNotRegisteredError || error instanceof SetNotAdmittedError))
        throw error;
      await delay(50);
    }
  }
}

/** Returns the status of a set. */
export async function statusOf(client: Client, name: string): Promise<RunnerSetStatus> {
  return await queryWholeSetStatus(client, setWorkflowId(name));
}

/**
 * Counts the failed and timed-out workflow tasks of sets, by Temporal's cause. A task that fails
 * repeatedly is in the history once.
 */
export async function failedWorkflowTasks(
  client: Client,
  workflowIds: readonly string[],
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const workflowId of workflowIds) {
    for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
      const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
      for (const {
        workflowTaskFailedEventAttributes: failed,
        workflowTaskTimedOutEventAttributes: late,
      } of events ?? []) {
        const timeout = late ? TimeoutType[late.timeoutType ?? 0] : undefined;
        const cause = failed ? WorkflowTaskFailedCause[failed.cause ?? 0] : timeout;
        if (cause !== undefined) counts[cause] = (counts[cause] ?? 0) + 1;
      }
    }
  }
  return counts;
}

/** One run of a set that continues as new. */
export interface SetRunSize {
  readonly historyLength: number;
  readonly historyBytes: number;
  /** Size of the state carried over from the previous run; 0 in the first run. */
  readonly carriedBytes: number;
}

/** Returns the runs of a set, the newest first. */
export async function runsOf(client: Client, workflowId: string): Promise<SetRunSize[]> {
  const runs: SetRunSize[] = [];
  for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    // Lists do not contain the size of a running workflow.
    const { historyLength, historySize = Number.NaN } = await client.workflow
      .getHandle(workflowId, runId)
      .describe();
    const { history } = await client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution: { workflowId, runId },
      maximumPageSize: 1,
    });
    const carried =
      history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[1]?.data;
    runs.push({ historyLength, historyBytes: historySize, carriedBytes: carried?.length ?? 0 });
  }
  return runs;
}
