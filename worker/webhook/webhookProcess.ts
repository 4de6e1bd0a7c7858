/**
 * The webhook as a separate process. It needs the webhook secret and Temporal, and has neither a
 * credential nor a cluster.
 */
import { once } from 'node:events';
import type { Client, Connection } from '@temporalio/client';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { checkTemporal } from '../checks/temporalCheck.ts';
import { connectClient } from '../temporal/clientConnection.ts';
import { SetDirectory } from './setDirectory.ts';
import { registerRoutingAge } from './setMetrics.ts';
import { EXIT_STATUS } from '../process/exitStatus.ts';
import { limitHeapGrowth } from '../process/heapGrowth.ts';
import { createHttpServer } from '../process/httpServer.ts';
import { observedQueues, pollerCheck, registerQueueMetrics } from '../process/queueMetrics.ts';
import { createMetrics, type Metrics } from '../process/metrics.ts';
import {
  isTemporalReachable,
  logFindings,
  openTemporalClient,
  listen,
  readDataConverter,
  runService,
  traceProcess,
  type RunOptions,
} from '../process/serviceProcess.ts';
import { loadWebhookConfig, type WebhookConfig } from '../settings/webhookConfig.ts';
import { startWebhook } from './startWebhook.ts';
import type { StopSignal } from '../process/stopSignal.ts';
import type { RotatingTemporalClient } from '../temporal/rotatingTemporalClient.ts';

/**
 * Receives deliveries until SIGTERM or SIGINT. Deliveries received by then are still passed on.
 * @returns the exit status, see {@link EXIT_STATUS}
 */
export async function runWebhookProcess(options: RunOptions = {}): Promise<number> {
  return await runService({ name: 'webhook', load: loadWebhookConfig, serve }, options);
}

/**
 * Creates the server for health checks and metrics, which are available before the connection to
 * Temporal.
 */
function createHealthServer(
  { taskQueue, temporal: { namespace } }: WebhookConfig,
  logger: Logger,
  { registry }: Metrics,
  link: () => RotatingTemporalClient<Connection> | undefined,
): FastifyInstance {
  registerQueueMetrics(
    registry,
    observedQueues(taskQueue),
    pollerCheck(() => link()?.client, namespace),
  );
  const temporal = async (): Promise<boolean> => {
    const { connection } = link() ?? {};
    return connection !== undefined && (await isTemporalReachable(connection));
  };
  return createHttpServer({ process: 'webhook', logger, registry, ready: { temporal } });
}

async function serve(
  config: WebhookConfig,
  logger: Logger,
  stop: StopSignal,
  onClose: (close: () => Promise<unknown>) => void,
): Promise<number> {
  limitHeapGrowth();
  const dataConverter = readDataConverter(config, logger);
  const metrics = createMetrics();
  const tracing = await traceProcess('holdfast-webhook', config, logger, onClose);
  let link: RotatingTemporalClient<Connection> | undefined;
  const http = createHealthServer(config, logger, metrics, () => link);
  onClose(async () => await http.close());
  const address = await listen(http, config.http, 'HOLDFAST_HTTP_ADDRESS');

  const linked = (link = await openTemporalClient(
    connectClient,
    config,
    dataConverter,
    logger,
    stop.signal,
    tracing?.client,
  ));
  onClose(async () => await linked.close());
  logFindings(await checkTemporal(linked.connection, config.temporal), logger);
  linked.watchCredentials(() => undefined); // this process passes no connection on
  const client = (): Client => linked.client;
  const sets = new SetDirectory({ client, taskQueue: config.taskQueue, logger });
  registerRoutingAge(metrics.registry, () => sets.ageMs);
  const webhook = await startWebhook(config.webhook, {
    client,
    taskQueue: config.taskQueue,
    sets,
    logger,
    metrics,
    traces: tracing?.deliveries,
  });
  onClose(async () => await webhook.close());
  logger.info(
    { taskQueue: config.taskQueue, http: address, webhook: webhook.address },
    'webhook started',
  );
  if (!stop.signal.aborted) await once(stop.signal, 'abort');
  logger.info(`received ${stop.description}: passing on received deliveries`);
  return EXIT_STATUS[stop.name ?? 'SIGTERM'];
}
