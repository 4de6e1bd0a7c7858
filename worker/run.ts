/** The worker as a process: from its settings to its exit status. */
import { setFlagsFromString } from 'node:v8';
import type { Client } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { GracefulShutdownPeriodExpiredError, Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { checkSurroundings } from './checks/bootCheck.ts';
import type { Finding } from './checks/finding.ts';
import { checkPlace } from './checks/placeCheck.ts';
import { dataConverterOf } from './codec/dataConverter.ts';
import { loadConfig, oneLine, type HoldfastConfig } from './settings/config.ts';
import { ConfigError } from './settings/configError.ts';
import { TemporalUnreachableError, connectTemporal } from './connect.ts';
import { EXIT_STATUS } from './exitStatus.ts';
import { createHttpServer } from './httpServer.ts';
import { registerSetMetrics } from './demand/setMetrics.ts';
import { startRedelivery } from './demand/redelivery.ts';
import { CoveringSets } from './demand/coveringSets.ts';
import { SetStatuses } from './demand/setStatuses.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import { HoldfastPlugin } from './plugin.ts';
import { createPorts } from './createPorts.ts';
import { listenForStop, type StopSignal } from './stopSignal.ts';
import { keepSweepSchedule } from './sweepSchedule.ts';
import { TemporalLink } from './temporalLink.ts';
import { installTemporalRuntime } from './temporalRuntime.ts';
import { registerWebhook } from './demand/webhook.ts';

export interface RunOptions {
  /** @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Takes one line that says why the worker cannot start. @default standard error */
  readonly complain?: (line: string) => void;
}

/** The worker cannot start; each line names a setting or a thing, and the fix. */
class CannotStart extends Error {
  override readonly name = 'CannotStart';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/**
 * Runs the worker until SIGTERM or SIGINT. A worker's end is never a runner's end: what is in flight is handed back to Temporal.
 * @returns the exit status, see {@link EXIT_STATUS}
 */
export async function runWorkerProcess(options: RunOptions = {}): Promise<number> {
  const { env = process.env, complain = (line: string) => process.stderr.write(`${line}\n`) } = options;
  try {
    return await run(readConfig(env));
  } catch (error) {
    if (!(error instanceof CannotStart)) throw error;
    for (const line of error.lines) complain(`holdfast worker: ${line}`);
    return EXIT_STATUS.cannotStart;
  }
}

function readConfig(env: NonNullable<RunOptions['env']>): HoldfastConfig {
  try {
    return loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) throw new CannotStart(error.message.split('\n'));
    throw error;
  }
}

/** The figures are those of `npm run bench -- waiting --runners 1000` and `scaleup`. */
function tuneV8({ workflowStacks }: HoldfastConfig): void {
  // Garbage would else pile up to several times what is alive, and the young generations of this thread and that of the workflows take
  // 200 MiB: 443 MiB with 1,000 runners instead of 740, for 3 % more CPU time. (`--optimize-for-size` needs as little, for 30 % more.)
  setFlagsFromString('--heap-growing-percent=30');
  setFlagsFromString('--semi-space-growth-factor=1');
  // The SDK takes a stack trace of every promise that a workflow makes, and keeps it as long as the promise is pending.
  if (!workflowStacks) setFlagsFromString('--stack-trace-limit=0');
}

async function run(config: HoldfastConfig): Promise<number> {
  tuneV8(config);
  const logger = createLogger(config.log);
  for (const { setting, message } of config.warnings) logger.warn(`${setting}: ${message}`);
  const closers: (() => Promise<unknown>)[] = [];
  const stop = listenForStop();
  try {
    return await serve(config, logger, stop, (close) => closers.unshift(close));
  } catch (error) {
    if (stop.name && stop.signal.aborted) return EXIT_STATUS[stop.name];
    throw error;
  } finally {
    for (const close of closers) await close().catch((error: unknown) => logger.warn({ err: error }, 'closing failed'));
    stop.dispose();
  }
}

/** @param onClose - takes what is to be closed in the end, last first */
async function serve(config: HoldfastConfig, logger: Logger, stop: StopSignal, onClose: (close: () => Promise<unknown>) => void): Promise<number> {
  const dataConverter = readDataConverter(config, logger);
  const metrics = createMetrics();
  const temporalMetrics = await installTemporalRuntime(logger);
  let link: TemporalLink | undefined;
  let plugin: HoldfastPlugin | undefined;
  stop.signal.addEventListener('abort', () => {
    // Its wording is a promise: people and tests look for it.
    logger.info(`received ${stop.description}: handing ${plugin?.status().activitiesInFlight ?? 0} activities back; no runner is cancelled`);
  });

  // First, so that the liveness probe is answered while the Temporal server is still coming up.
  const http = createHttpServer({
    logger,
    registry: metrics.registry,
    temporalMetrics,
    ready: {
      temporal: async () => link !== undefined && (await answers(link.connection)),
      polling: () => plugin?.status().polling ?? false,
      watch: () => plugin?.status().watchSynced ?? false,
    },
  });
  const client = (): Client => {
    if (!link) throw new Error('not connected to Temporal yet');
    return link.client;
  };
  const sets = new CoveringSets({ client, taskQueue: config.taskQueue, logger });
  const statuses = new SetStatuses(sets, logger);
  registerSetMetrics(metrics.registry, async () => (link ? await statuses.now() : []));
  if (config.webhookSecrets) {
    await registerWebhook(http, { client, secrets: config.webhookSecrets, taskQueue: config.taskQueue, sets, logger, onDelivery: metrics.webhook, onJob: metrics.job });
  }
  onClose(async () => await http.close());
  const address = await listen(http.listen(config.http), config);

  const connection = await connect(config, logger, stop.signal);
  const { temporal, readTemporal } = config;
  link = new TemporalLink({ connection, temporal, readTemporal, dataConverter, logger });
  onClose(async () => {
    await http.close(); // what it has received is passed on before the connection goes
    await link?.close();
  });
  complainOf(await checkSurroundings(config, connection), logger);
  const ports = await createPorts(config, { logger, metrics });
  onClose(async () => await ports.close());
  complainOf([await checkPlace(config, connection, async () => await ports.compute.place())], logger);

  if (config.webhookSecrets && config.redeliveryIntervalMs > 0) {
    const ready = async (): Promise<boolean> => !stop.signal.aborted && link !== undefined && (await answers(link.connection));
    const { credentials, redeliveryIntervalMs: intervalMs } = config;
    const redelivery = startRedelivery({ credentials, ciServers: ports.ciServers, intervalMs, ready, logger, onRedelivered: metrics.redelivered });
    onClose(async () => await redelivery.stop());
  }
  plugin = new HoldfastPlugin({ ...ports, logger, onCompletion: metrics.completion, onSweep: metrics.swept });
  await keepSweeps(config, link.client, ports.compute.owned !== undefined, logger);
  const worker = await Worker.create({ ...workerOptions(config, connection, plugin), dataConverter });
  const running = worker.run();
  link.follow((next) => plugin?.useConnection(next));
  // A Worker that was made must run and be shut down, or its connection cannot be closed: also when the signal came first.
  if (stop.signal.aborted) worker.shutdown();
  else stop.signal.addEventListener('abort', () => worker.shutdown());
  logger.info({ taskQueue: config.taskQueue, compute: config.compute.kind, credentials: Object.keys(config.credentials), http: address }, 'worker started');
  try {
    await running;
  } catch (error) {
    if (!stop.name || !(error instanceof GracefulShutdownPeriodExpiredError)) throw error;
    logger.warn('some activities did not end within HOLDFAST_SHUTDOWN_FORCE; Temporal gives them to another worker when their timeouts are over');
  }
  if (!stop.name) throw new Error('the worker stopped by itself');
  return EXIT_STATUS[stop.name];
}

/** @throws CannotStart */
function readDataConverter({ codecKeyFile }: HoldfastConfig, logger: Logger): DataConverter {
  try {
    return dataConverterOf(codecKeyFile, (error) => logger.error(error.message));
  } catch (error) {
    throw new CannotStart([oneLine(error)]);
  }
}

async function listen(listening: Promise<string>, { http }: HoldfastConfig): Promise<string> {
  try {
    return await listening;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new CannotStart([`HOLDFAST_HTTP_ADDRESS: cannot listen on ${http.host}:${http.port} (${code}): set another address or port`]);
  }
}

async function connect(config: HoldfastConfig, logger: Logger, signal: AbortSignal): Promise<NativeConnection> {
  try {
    return await connectTemporal(config.temporal, { timeoutMs: config.connectTimeoutMs, logger, signal });
  } catch (error) {
    if (error instanceof TemporalUnreachableError) throw new CannotStart([error.message]);
    throw error;
  }
}

/** @throws CannotStart where one of them is an error */
function complainOf(findings: readonly Finding[], logger: Logger): void {
  const text = (finding: { what: string; fix?: string }): string => (finding.fix === undefined ? finding.what : `${finding.what}; fix: ${finding.fix}`);
  for (const finding of findings) if (finding.level === 'warning') logger.warn(text(finding));
  const errors = findings.filter((finding) => finding.level === 'error');
  if (errors.length > 0) throw new CannotStart(errors.map(text));
}

/** Runners do well without the Schedule: a worker that may not change it takes care of them all the same. */
async function keepSweeps({ taskQueue, sweepIntervalMs }: HoldfastConfig, client: Client, canSweep: boolean, logger: Logger): Promise<void> {
  try {
    const schedule = await keepSweepSchedule({ client, taskQueue, intervalMs: canSweep ? sweepIntervalMs : 0 });
    logger.debug({ schedule, intervalMs: sweepIntervalMs }, "the sweep's Schedule");
  } catch (error) {
    logger.warn({ err: error }, "the sweep's Schedule could not be brought up to date (HOLDFAST_SWEEP_INTERVAL): it stays as it was, and if there is none nothing sweeps; allow this worker to change Schedules, or run \"holdfast sweep\" by other means");
  }
}

/** The plugin alone brings workflows and activities: a Worker of yours has what this one has. */
function workerOptions(config: HoldfastConfig, connection: NativeConnection, plugin: HoldfastPlugin): WorkerOptions {
  return {
    connection,
    namespace: config.temporal.namespace,
    taskQueue: config.taskQueue,
    plugins: [plugin],
    maxCachedWorkflows: config.maxCachedWorkflows,
    maxConcurrentWorkflowTaskExecutions: config.maxWorkflowTasks,
    maxConcurrentActivityTaskExecutions: config.maxActivities,
    // Measured (docs/benchmarks.md): a fixed few polls, most of them for new runners, bring a scale-up online a quarter faster than
    // autoscaling polls do, and cost a steady turnover nothing. What is under way already keeps its share.
    maxConcurrentWorkflowTaskPolls: 10,
    nonStickyToStickyPollRatio: 0.7,
    maxConcurrentActivityTaskPolls: 10,
    shutdownGraceTime: config.shutdownGraceMs,
    shutdownForceTime: config.shutdownForceMs,
    ...(config.versioning && {
      workerDeploymentOptions: {
        useWorkerVersioning: true,
        version: config.versioning,
        // Runners and sets say themselves what they are; this is for workflows that say nothing.
        defaultVersioningBehavior: 'PINNED',
      },
    }),
  };
}

async function answers(connection: NativeConnection): Promise<boolean> {
  await connection.withDeadline(Date.now() + 2_000, async () => await connection.workflowService.getSystemInfo({}));
  return true;
}
