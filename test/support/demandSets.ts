/** Runners and sets without a worker: signals to them stay in their histories. */
import type { Client, WorkflowHandle } from '@temporalio/client';
import {
  RUNNER_WORKFLOW,
  RERUN_WORKFLOW,
  RUNNER_SET_WORKFLOW,
  SET_ROUTING_MEMO,
  rerunWorkflowId,
  type JobEvent,
  type RunnerSetStatus,
  type SetRoutingInfo,
} from '../../core/contract/index.ts';
import { workflowIdFromRunnerName } from '../../core/domain/runnerName.ts';
import { runningSetsQuery } from '../../core/domain/visibility.ts';
import { until } from './until.ts';

export interface ToldSet {
  readonly handle: WorkflowHandle;
  /** The events of each `demand` signal, in the order in which Temporal accepted them. */
  batches(): Promise<JobEvent[][]>;
  /** All events. */
  events(): Promise<JobEvent[]>;
}

/** Bodies of the signals of one name in a workflow's history. */
export async function signalsOf(handle: WorkflowHandle, name: string): Promise<unknown[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? [])
    .map((event) => event.workflowExecutionSignaledEventAttributes)
    .filter((signal) => signal?.signalName === name)
    .map(
      (signal) =>
        JSON.parse(Buffer.from(signal?.input?.payloads?.[0]?.data ?? '').toString()) as unknown,
    );
}

/**
 * Starts a set whose memo contains its cover (or, without a cover, does not), and waits until it is
 * listed.
 */
export async function startToldSet(
  client: Client,
  taskQueue: string,
  workflowId: string,
  cover: SetRoutingInfo | undefined,
  status?: RunnerSetStatus,
): Promise<ToldSet> {
  const handle = await client.workflow.start(RUNNER_SET_WORKFLOW, {
    taskQueue,
    workflowId,
    args: status ? [status] : [],
    ...(cover && { memo: { [SET_ROUTING_MEMO]: cover } }),
  });
  await until(
    'the set to be listed',
    async () =>
      (
        await client.workflow.count(
          `${runningSetsQuery(taskQueue)} AND WorkflowId = '${workflowId}'`,
        )
      ).count === 1,
  );
  const batches = async (): Promise<JobEvent[][]> =>
    ((await signalsOf(handle, 'jobEvents')) as { events: JobEvent[] }[]).map(
      ({ events }) => events,
    );
  return { handle, batches, events: async () => (await batches()).flat() };
}

export function statusOf(name: string, more: Partial<RunnerSetStatus>): RunnerSetStatus {
  return {
    name,
    templateHash: 'g1',
    desired: 0,
    min: 0,
    max: 10,
    runners: [],
    runnerCounts: { starting: 0, idle: 0, busy: 0, draining: 0 },
    jobs: { queued: 0, running: 0, startedTotal: 0, completedTotal: 0 },
    labels: ['linux'],
    scope: 'acme',
    holds: [],
    ...more,
  };
}

export interface ToldRunner {
  /** Bodies of the `jobEvent` signals. */
  told(): Promise<unknown[]>;
  end(): Promise<void>;
}

/** Starts the workflow of the runner that has this name at the CI server. */
export async function startToldRunner(
  client: Client,
  taskQueue: string,
  name: string,
): Promise<ToldRunner> {
  const handle = await client.workflow.start(RUNNER_WORKFLOW, {
    taskQueue,
    workflowId: workflowIdFromRunnerName(name) ?? '',
  });
  return {
    told: async () => await signalsOf(handle, 'jobEvent'),
    end: async () => void (await handle.terminate()),
  };
}

/** Starts the rerun of the job of the runner that has this name. */
export async function startToldRerun(
  client: Client,
  taskQueue: string,
  name: string,
): Promise<Pick<ToldRunner, 'told'>> {
  const handle = await client.workflow.start(RERUN_WORKFLOW, {
    taskQueue,
    workflowId: rerunWorkflowId(name),
  });
  return { told: async () => await signalsOf(handle, 'jobEvent') };
}

/**
 * Time of all events from {@link queued} and {@link run}: now, in whole seconds, as GitHub sends
 * it.
 */
export const AT = new Date(Math.floor(Date.now() / 1_000) * 1_000).toISOString();

/** Body of a delivery: a job was queued. */
export const queued = (id: number, labels: string[], repository = 'acme/app'): object => ({
  action: 'queued',
  workflow_job: {
    id,
    run_attempt: 1,
    name: 'build',
    labels,
    created_at: AT,
    runner_id: null,
    runner_name: null,
  },
  repository: { full_name: repository },
});

/** Body of a delivery about a job that a runner runs, or ran. */
export const run = (
  runnerName: string,
  action = 'in_progress',
  labels = ['self-hosted', 'none'],
  conclusion?: string,
): object => ({
  action,
  workflow_job: {
    id: 7,
    name: 'bäuen',
    labels,
    created_at: AT,
    started_at: AT,
    runner_id: 3,
    runner_name: runnerName,
    ...(conclusion === undefined ? {} : { conclusion }),
  },
  repository: { full_name: 'acme/app' },
});
