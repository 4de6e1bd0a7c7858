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

/** Starts it. @returns the name of a set whose label is its name */
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
  await untilAdmitted(client, name); // it is listed with what it covers
  return name;
}

/** A set answers only when its input has been checked. */
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

export async function statusOf(client: Client, name: string): Promise<RunnerSetStatus> {
  return await queryWholeSetStatus(client, setWorkflowId(name));
}

/** What became of workflow tasks of sets that were not completed: how many, by Temporal's word for it; a task that is tried again and again is in its history once. */
export async function failedWorkflowTasks(
  client: Client,
  workflowIds: readonly string[],
): Promise<Record<string, number>> {
  const lost: Record<string, number> = {};
  for (const workflowId of workflowIds) {
    for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
      const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
      for (const {
        workflowTaskFailedEventAttributes: failed,
        workflowTaskTimedOutEventAttributes: late,
      } of events ?? []) {
        const timeout = late ? TimeoutType[late.timeoutType ?? 0] : undefined;
        const why = failed ? WorkflowTaskFailedCause[failed.cause ?? 0] : timeout;
        if (why !== undefined) lost[why] = (lost[why] ?? 0) + 1;
      }
    }
  }
  return lost;
}

/** One run of a set that continues as new. */
export interface SetRunSize {
  readonly historyLength: number;
  readonly historyBytes: number;
  /** Taken over from the run before; 0 in the first. */
  readonly carriedBytes: number;
}

/** The newest first. */
export async function runsOf(client: Client, workflowId: string): Promise<SetRunSize[]> {
  const runs: SetRunSize[] = [];
  for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    // Lists do not tell the size of a run that goes on.
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
