/**
 * The HTTP server of the worker: `/livez`, `/readyz`, `/metrics`, and further routes registered on
 * it.
 */
import { fastify, LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';

/** A condition for the readiness of the worker. An exception counts as not ready. */
export type ReadinessCheck = () => boolean | Promise<boolean>;

/** Options of {@link createHttpServer}. */
export interface HttpServerOptions {
  /** Label of the process in `holdfast_ready`. */
  readonly process: 'worker' | 'webhook';
  readonly logger: Logger;
  /** Readiness checks by name. The response lists the names that fail. */
  readonly ready: Readonly<Record<string, ReadinessCheck>>;
  readonly registry: Registry;
  /**
   * Returns the metrics of the native part of the Temporal SDK as Prometheus text.
   * @default no such metrics
   */
  readonly temporalMetrics?: () => Promise<string>;
}

/** Body limit of all routes. GitHub's own cap is 25 MB, but the events that we read are a hundredth of a MiB. */
const BODY_LIMIT = 1024 * 1024;

/**
 * Creates the HTTP server with `/livez`, `/readyz` and `/metrics`. It listens when its `listen` is
 * called.
 */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { logger, ready, registry, temporalMetrics = async () => '' } = options;
  const loggerInstance: FastifyBaseLogger = logger.child({ component: 'http' }, { level: 'warn' });
  // Two probes every few seconds would drown the log.
  const logController = new LogController({ disableRequestLogging: true });
  const server = fastify({
    loggerInstance,
    logController,
    bodyLimit: BODY_LIMIT,
    requestTimeout: 15_000,
  });

  registerReadiness(options);

  // A response proves that the event loop runs. A restart would not fix other failures.
  server.get('/livez', async () => ({ status: 'ok' }));

  server.get('/readyz', async (_request, reply) => {
    const results = await Promise.all(
      Object.entries(ready).map(async ([name, check]) => [name, await passes(check)] as const),
    );
    const failing = results.filter(([, ok]) => !ok).map(([name]) => name);
    return await reply
      .code(failing.length === 0 ? 200 : 503)
      .send({ status: failing.length === 0 ? 'ok' : 'not ready', failing });
  });

  server.get('/metrics', async (_request, reply) => {
    const [ours, temporals] = await Promise.all([registry.metrics(), temporalMetrics()]);
    return await reply.type(registry.contentType).send(`${ours}\n${temporals}`);
  });
  return server;
}

/** The checks of `/readyz` as a metric, which a worker has from its start. */
function registerReadiness({ process, ready, registry }: HttpServerOptions): void {
  const gauge: Gauge = new Gauge({
    name: 'holdfast_ready',
    help: '1 if the readiness check of the process passes, else 0',
    labelNames: ['process', 'check'],
    registers: [registry],
    collect: async () => {
      const results = await Promise.all(
        Object.entries(ready).map(async ([check, run]) => [check, await passes(run)] as const),
      );
      for (const [check, ok] of results) gauge.set({ process, check }, ok ? 1 : 0);
    },
  });
}

async function passes(check: ReadinessCheck): Promise<boolean> {
  try {
    return await check();
  } catch {
    return false; // not ready, whatever the reason; the part itself logs it
  }
}
