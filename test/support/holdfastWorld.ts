import { randomUUID } from 'node:crypto';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import {
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type ActivityInterceptorsFactory,
  type WorkerOptions,
} from '@temporalio/worker';
import type { ActivityPorts } from '../../activities/ports/activityPorts.ts';
import type { HoldfastActivities } from '../../core/activities/index.ts';
import { HoldfastPlugin } from '../../worker/plugin/plugin.ts';
import {
  RUNNER_WORKFLOW,
  statusQuery,
  type RunnerInput,
  type RunnerResult,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import { SHORT_INTERVALS } from './shortIntervals.ts';
import { terminateAll } from './terminateAll.ts';
import { until } from './until.ts';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});

/**
 * A worker for one test on the real Temporal server, with the real workflows, activities and
 * watcher over the given ports.
 */
export interface HoldfastWorld {
  readonly client: Client;
  readonly taskQueue: string;
  /** Results of the next calls of an activity, which then does nothing. */
  readonly pretences: {
    readonly activity: keyof HoldfastActivities;
    readonly answer: (input: never) => unknown;
  }[];
  start(input?: Partial<RunnerInput>, workflowId?: string): Promise<RunnerRun>;
  /** Stops the worker; `resume` starts another. */
  suspend(): Promise<void>;
  /**
   * Starts a worker with these credentials. @default ["default"]
   * @param dataConverter - replaces the world's
   * @param more - other options
   */
  resume(
    credentials?: readonly string[],
    dataConverter?: DataConverter,
    more?: Pick<WorkerOptions, 'maxCachedWorkflows' | 'workflowsPath'>,
  ): Promise<void>;
  close(): Promise<void>;
}

export interface RunnerRun {
  readonly handle: WorkflowHandle;
  result(): Promise<RunnerResult>;
  status(): Promise<RunnerStatus>;
  /** Waits for a status that meets the condition. */
  reaches(what: string, like: (status: RunnerStatus) => boolean): Promise<RunnerStatus>;
  /** Name of the present pod, once there is one. */
  pod(): Promise<string>;
}

/** @param credentials - credentials of the first worker. @default ["default"] */
export async function holdfastWorld(
  address: string,
  ports: ActivityPorts,
  credentials?: readonly string[],
  dataConverter: DataConverter = {},
): Promise<HoldfastWorld> {
  const taskQueue = `test-${randomUUID().slice(0, 8)}`;
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, dataConverter });
  const native = await NativeConnection.connect({ address });
  let running: { worker: Worker; done: Promise<void> } | undefined;

  const pretences: HoldfastWorld['pretences'] = [];
  const pretending: ActivityInterceptorsFactory = ({ info }) => ({
    inbound: {
      execute: async (input, next) => {
        const index = pretences.findIndex(({ activity }) => activity === info.activityType);
        const [pretence] = index < 0 ? [] : pretences.splice(index, 1);
        return await (pretence === undefined
          ? next(input)
          : pretence.answer(input.args[0] as never));
      },
    },
  });

  const world: HoldfastWorld = {
    client,
    taskQueue,
    pretences,
    async start(input = {}, workflowId = `runner-${randomUUID().slice(0, 8)}`) {
      const full: RunnerInput = {
        ...(input.ciServer === 'none' ? {} : { organization: 'acme' }),
        ...input,
        intervals: { ...SHORT_INTERVALS, ...input.intervals },
      };
      const handle = await client.workflow.start(RUNNER_WORKFLOW, {
        workflowId,
        taskQueue,
        args: [full],
      });
      return runnerRun(handle);
    },
    async suspend() {
      running?.worker.shutdown();
      await running?.done;
      running = undefined;
    },
    async resume(credentials = ['default'], another = dataConverter, more = {}) {
      const plugin = new HoldfastPlugin({
        ...ports,
        ciQueues: credentials.map((credential) => ({ credential })),
        deferralLimits: { provisioningMs: 50, tearDownMs: 50, busyMs: 50 },
      });
      const worker = await Worker.create({
        connection: native,
        taskQueue,
        dataConverter: another,
        plugins: [plugin],
        interceptors: { activity: [pretending] },
        ...cachedWorkflows(),
        ...more,
      });
      running = { worker, done: worker.run() };
    },
    async close() {
      await world.suspend();
      await terminateAll(client, taskQueue);
      await native.close();
      await connection.close();
    },
  };
  await world.resume(credentials);
  return world;
}

function runnerRun(handle: WorkflowHandle): RunnerRun {
  const run: RunnerRun = {
    handle,
    result: async () => (await handle.result()) as RunnerResult,
    status: async () => await handle.query(statusQuery),
    reaches: async (what, like) => {
      let last: RunnerStatus | undefined;
      await until(
        `runner to reach: ${what}`,
        async () => like((last = await run.status())),
        () => JSON.stringify(last),
      );
      return last as RunnerStatus;
    },
    pod: async () =>
      (await run.reaches('a pod', (status) => status.pod !== undefined)).pod as string,
  };
  return run;
}

/**
 * Number of workflows that a test's worker caches (HOLDFAST_TEST_CACHED_WORKFLOWS). With 0 every
 * workflow task replays.
 */
function cachedWorkflows(): Pick<WorkerOptions, 'maxCachedWorkflows'> {
  const wanted = process.env['HOLDFAST_TEST_CACHED_WORKFLOWS'];
  return wanted === undefined ? {} : { maxCachedWorkflows: Number(wanted) };
}
