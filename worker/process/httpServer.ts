/** HTTP server of the worker: `/livez`, `/readyz`, `/metrics`, and further routes. */
import { fastify, LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';

/** Condition for the readiness of the worker. An exception counts as not ready. */
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

/**
 * Maximum size of a body on all routes (bytes). GitHub allows 25 MB, but the events that are read
 * here have about 10 KiB.
 */
const BODY_LIMIT = 1024 * 1024;

/**
 * Creates the HTTP server with `/livez`, `/readyz` and `/metrics`. It listens when its `listen` is
 * called.
 */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { logger, ready, registry, temporalMetrics = async () => '' } = options;
  const loggerInstance: FastifyBaseLogger = logger.child({ component: 'http' }, { level: 'warn' });
  // Do not log requests: two probes every few seconds would fill the log.
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

/** Registers the readiness checks as a metric, from the start of the process. */
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
    return false; // not ready for any reason; the check itself logs it
  }
}
