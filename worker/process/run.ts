/** Worker as a process, from its settings to its exit status. */
import { setFlagsFromString } from 'node:v8';
import type { Client } from '@temporalio/client';
import {
  GracefulShutdownPeriodExpiredError,
  Worker,
  type NativeConnection,
  type WorkerOptions,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { runEnvironmentChecks } from '../checks/bootCheck.ts';
import { checkLocation } from '../checks/locationCheck.ts';
import { loadConfig, type HoldfastConfig } from '../settings/config.ts';
import { EXIT_STATUS } from './exitStatus.ts';
import { limitHeapGrowth } from './heapGrowth.ts';
import { createHttpServer } from './httpServer.ts';
import { registerRoutingAge, registerSetMetrics } from '../webhook/setMetrics.ts';
import { startRedelivery } from '../webhook/redelivery.ts';
import { SetDirectory } from '../webhook/setDirectory.ts';
import { SetStatuses } from '../webhook/setStatuses.ts';
import { createMetrics } from './metrics.ts';
import { connectNative } from '../temporal/nativeConnection.ts';
import { observedQueues, pollerCheck, registerQueueMetrics } from './queueMetrics.ts';
import { RunnerVersionMonitor } from './runnerVersionMonitor.ts';
import { packageInfo } from './packageInfo.ts';
import { HoldfastPlugin } from '../plugin/plugin.ts';
import { createPorts } from '../plugin/createPorts.ts';
import {
  isTemporalReachable,
  logFindings,
  openTemporalClient,
  listen,
  readDataConverter,
  runService,
  traceProcess,
  type RunOptions,
} from './serviceProcess.ts';
import type { StopSignal } from './stopSignal.ts';
import { ensureSweepSchedule } from '../temporal/sweepSchedule.ts';
import type { RotatingTemporalClient } from '../temporal/rotatingTemporalClient.ts';
import { installTemporalRuntime } from '../temporal/temporalRuntime.ts';
import { workerDeploymentOptions } from '../plugin/versioning.ts';
import { startRunnerSetController } from '../controller/startRunnerSetController.ts';
import { startWebhook } from '../webhook/startWebhook.ts';

/**
 * Runs the worker until SIGTERM or SIGINT. Runners continue when a worker ends: its running
 * activities are retried by another worker.
 * @returns the exit status, see {@link EXIT_STATUS}
 */
export async function runWorkerProcess(options: RunOptions = {}): Promise<number> {
  return await runService({ name: 'worker', load: loadConfig, serve: runWorker }, options);
}

/** Maximum age of the list of sets for the daily check of runner versions (ms). */
const MAX_LIST_AGE_MS = 60_000;

function configureV8({ workflowStacks }: HoldfastConfig): void {
  limitHeapGrowth();
  // The SDK records a stack trace for every promise of a workflow, and keeps it while the promise
  // is pending.
  if (!workflowStacks) setFlagsFromString('--stack-trace-limit=0');
}

async function runWorker(
  config: HoldfastConfig,
  logger: Logger,
  stop: StopSignal,
  onClose: (close: () => Promise<unknown>) => void,
): Promise<number> {
  configureV8(config);
  const dataConverter = readDataConverter(config, logger);
  const metrics = createMetrics();
  const tracing = await traceProcess('holdfast-worker', config, logger, onClose);
  const temporalMetrics = await installTemporalRuntime(logger);
  let link: RotatingTemporalClient<NativeConnection> | undefined;
  let plugin: HoldfastPlugin | undefined;
  stop.signal.addEventListener('abort', () => {
    logger.info(
      `received ${stop.description}: handing ${plugin?.status().activitiesInFlight ?? 0} activities back; no runner is cancelled`,
    );
  });

  // Listen first: the liveness probe must be answered while the Temporal server starts.
  const http = createHttpServer({
    process: 'worker',
    logger,
    registry: metrics.registry,
    temporalMetrics,
    ready: {
      temporal: async () => link !== undefined && (await isTemporalReachable(link.connection)),
      polling: () => plugin?.status().polling ?? false,
      watch: () => plugin?.status().podCacheSynced ?? false,
    },
  });
  const client = (): Client => {
    if (!link) throw new Error('not connected to Temporal yet');
    return link.client;
  };
  const sets = new SetDirectory({ client, taskQueue: config.taskQueue, logger });
  const statuses = new SetStatuses(sets, logger);
  registerRoutingAge(metrics.registry, () => sets.ageMs);
  registerSetMetrics(metrics.registry, async () => (link ? await statuses.get() : []));
  registerQueueMetrics(
    metrics.registry,
    observedQueues(config.taskQueue, Object.keys(config.credentials)),
    pollerCheck(() => link?.client, config.temporal.namespace),
  );
  onClose(async () => await http.close());
  const address = await listen(http, config.http, 'HOLDFAST_HTTP_ADDRESS');
  const webhook =
    config.webhook &&
    (await startWebhook(config.webhook, {
      client,
      taskQueue: config.taskQueue,
      sets,
      logger,
      metrics,
      traces: tracing?.deliveries,
      onJobStarted: (workflowId) => plugin?.jobEventDelivered(workflowId),
    }));
  onClose(async () => await webhook?.close());

  link = await openTemporalClient(
    connectNative,
    config,
    dataConverter,
    logger,
    stop.signal,
    tracing?.client,
  );
  const { connection } = link;
  onClose(async () => {
    await webhook?.close(); // deliver received events before the connection closes
    await link?.close();
  });
  logFindings(await runEnvironmentChecks(config, connection), logger);
  const ports = await createPorts(config, { logger, metrics });
  onClose(async () => await ports.close());
  logFindings(
    [await checkLocation(config, connection, async () => await ports.compute.location())],
    logger,
  );

  if (config.redeliveryIntervalMs > 0) {
    const ready = async (): Promise<boolean> =>
      !stop.signal.aborted && link !== undefined && (await isTemporalReachable(link.connection));
    const { credentials, redeliveryIntervalMs: intervalMs } = config;
    const redelivery = startRedelivery({
      credentials,
      ciServers: ports.ciServers,
      intervalMs,
      ready,
      logger,
      onRedelivered: metrics.redelivered,
    });
    onClose(async () => await redelivery.stop());
  }
  const versions = new RunnerVersionMonitor({
    client,
    sets: async () => (await sets.list(MAX_LIST_AGE_MS)).ids,
    ciServers: ports.ciServers,
    defaultImage: config.compute.kind === 'kubernetes' ? config.compute.image : undefined,
    logger,
  });
  versions.start();
  onClose(async () => await versions.stop());
  plugin = new HoldfastPlugin({
    ...ports,
    ...omitUndefined({ tracing }),
    logger,
    onCompletion: metrics.podWait,
    onSweep: metrics.sweep,
    onScaleSet: metrics.scaleSet,
  });
  await updateSweepSchedule(config, link.client, ports.compute.ownedObjects !== undefined, logger);
  const worker = await Worker.create({
    ...workerOptions(config, connection, plugin),
    dataConverter,
  });
  const running = worker.run();
  link.watchCredentials((next) => plugin?.useConnection(next));
  // A created Worker must run and be shut down even after a stop signal. Otherwise its connection
  // cannot be closed.
  if (stop.signal.aborted) worker.shutdown();
  else stop.signal.addEventListener('abort', () => worker.shutdown());
  const resources = await startRunnerSetController(config, {
    client,
    location: async () => await ports.compute.location(),
    logger: logger.child({ component: 'runnerSets' }),
    onRequest: metrics.kubernetesRequest,
  });
  onClose(async () => await resources?.stop());
  logger.info(
    {
      taskQueue: config.taskQueue,
      compute: config.compute.kind,
      credentials: Object.keys(config.credentials),
      http: address,
      ...omitUndefined({ webhook: webhook?.address }),
    },
    'worker started',
  );
  try {
    await running;
  } catch (error) {
    if (!stop.name || !(error instanceof GracefulShutdownPeriodExpiredError)) throw error;
    logger.warn(
      'some activities did not end within HOLDFAST_SHUTDOWN_FORCE_TIME; Temporal gives them to another worker when their timeouts are over',
    );
  }
  if (!stop.name) throw new Error('the worker stopped by itself');
  return EXIT_STATUS[stop.name];
}

/**
 * Creates or updates the Schedule of the sweep. Runners do not depend on it, so a failure is only
 * logged.
 */
async function updateSweepSchedule(
  { taskQueue, sweepIntervalMs }: HoldfastConfig,
  client: Client,
  canSweep: boolean,
  logger: Logger,
): Promise<void> {
  try {
    const schedule = await ensureSweepSchedule({
      client,
      taskQueue,
      intervalMs: canSweep ? sweepIntervalMs : 0,
    });
    logger.debug({ schedule, intervalMs: sweepIntervalMs }, "the sweep's Schedule");
  } catch (error) {
    logger.warn(
      { err: error },
      'the sweep\'s Schedule could not be updated (HOLDFAST_SWEEP_INTERVAL): it is unchanged, and without one nothing sweeps; allow this worker to change Schedules, or run "holdfast sweep" periodically',
    );
  }
}

/**
 * Returns the options of the Worker. The plugin adds the workflows and activities, as it does to
 * your own Workers.
 */
function workerOptions(
  config: HoldfastConfig,
  connection: NativeConnection,
  plugin: HoldfastPlugin,
): WorkerOptions {
  return {
    connection,
    namespace: config.temporal.namespace,
    taskQueue: config.taskQueue,
    // The SDK's default build ID is a hundred bytes long, and is stored in each event of a workflow
    // task.
    ...(config.versioning === undefined ? { buildId: `holdfast@${packageInfo().version}` } : {}),
    plugins: [plugin],
    maxCachedWorkflows: config.maxCachedWorkflows,
    maxConcurrentWorkflowTaskExecutions: config.maxWorkflowTasks,
    maxConcurrentActivityTaskExecutions: config.maxActivities,
    // Measured (docs/benchmarks.md): a fixed small number of polls, most of them for new runners,
    // brings a scale-up online a quarter faster than autoscaling polls, at no cost for a steady
    // turnover. Running activities keep their share.
    workflowTaskPollerBehavior: { type: 'simple-maximum', maximum: 10 },
    nonStickyToStickyPollRatio: 0.7,
    activityTaskPollerBehavior: { type: 'simple-maximum', maximum: 10 },
    shutdownGraceTime: config.shutdownGraceMs,
    shutdownForceTime: config.shutdownForceMs,
    ...(config.versioning && {
      workerDeploymentOptions: workerDeploymentOptions(config.versioning),
    }),
  };
}
