/**
 * The worker's process, except that the watch over the pods reports nothing: neither the ends of
 * waits nor signals. Only the re-sync of each wait remains.
 */
import { NativeConnection, Worker } from '@temporalio/worker';
import type { Compute } from '../../activities/ports/compute.ts';
import { loadConfig } from '../../worker/settings/config.ts';
import { createHttpServer } from '../../worker/process/httpServer.ts';
import { createLogger } from '../../worker/process/logger.ts';
import { createMetrics } from '../../worker/process/metrics.ts';
import { HoldfastPlugin } from '../../worker/plugin/plugin.ts';
import { createPorts } from '../../worker/plugin/createPorts.ts';
import { installTemporalRuntime } from '../../worker/temporal/temporalRuntime.ts';

const config = loadConfig();
if (config.webhook !== undefined) throw new Error('this worker takes no job events');
const logger = createLogger(config.log);
const metrics = createMetrics();
const temporalMetrics = await installTemporalRuntime(logger);
const connection = await NativeConnection.connect(config.temporal);
const { compute, ciServers, ciQueues } = await createPorts(config, { logger, metrics });

let completions = 0;
const muted: Compute = {
  ...compute,
  watch: async () => ({ stop: async () => undefined, synced: () => true }),
};
const plugin = new HoldfastPlugin({
  compute: muted,
  ciServers,
  ciQueues,
  logger,
  onCompletion: () => completions++,
});
const worker = await Worker.create({ connection, taskQueue: config.taskQueue, plugins: [plugin] });
const http = createHttpServer({
  process: 'worker',
  logger,
  registry: metrics.registry,
  temporalMetrics,
  ready: { polling: () => plugin.status().polling, muted: () => completions === 0 },
});
logger.info({ http: await http.listen(config.http) }, 'worker started');
await worker.run();
