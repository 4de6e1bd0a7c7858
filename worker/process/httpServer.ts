/** The worker's small HTTP server: `/livez`, `/readyz`, `/metrics`, and whatever else is registered on it. */
import { fastify, LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';

/** One thing that must hold before the worker counts as ready. */
export type ReadinessCheck = () => boolean | Promise<boolean>;

export interface HttpServerOptions {
  readonly logger: Logger;
  /** By name; the names that fail are in the answer. */
  readonly ready: Readonly<Record<string, ReadinessCheck>>;
  readonly registry: Registry;
  /** The metrics of the Temporal SDK's native part as Prometheus text. @default there is none in this process */
  readonly temporalMetrics?: () => Promise<string>;
}

/** Body limit of all routes. GitHub's own cap is 25 MB, but the events that we read are a hundredth of a MiB. */
const BODY_LIMIT = 1024 * 1024;

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

  // It answers: the event loop turns. What is broken beyond that, a restart would not mend.
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

async function passes(check: ReadinessCheck): Promise<boolean> {
  try {
    return await check();
  } catch {
    return false; // not ready, whatever the reason; the part itself logs it
  }
}
