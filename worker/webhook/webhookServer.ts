/** HTTP server for deliveries on a separate port. No client is trusted without a signature. */
import { fastify, LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { ConnectionLimit } from './connectionLimit.ts';
import { registerWebhook, type WebhookOptions } from './webhook.ts';

/** Options of {@link createWebhookServer}. */
export interface WebhookServerOptions extends WebhookOptions {
  readonly logger: Logger;
  /**
   * Maximum concurrent connections.
   * @default 4000
   */
  readonly maxConnections?: number;
  /**
   * Time limits of connections.
   * @default 5 s for headers, 10 s for a request, 1 s for the rest of a body, checked every second
   */
  readonly timeouts?: ConnectionTimeouts;
}

/** Time limits of the server's connections (ms). */
export interface ConnectionTimeouts {
  /** Maximum time until the headers of a request have arrived. */
  readonly headersMs: number;
  /**
   * Maximum time until its body has arrived. GitHub sends a delivery in one piece and waits 10 s.
   */
  readonly requestMs: number;
  /**
   * Time for which the rest of a body is read and discarded after the response. Closing the
   * connection immediately could lose the response.
   */
  readonly lingerMs: number;
  /** Interval between two checks of these limits by Node. Its own default is 30 s. */
  readonly checkMs: number;
}

const TIMEOUTS: ConnectionTimeouts = {
  headersMs: 5_000,
  requestMs: 10_000,
  lingerMs: 1_000,
  checkMs: 1_000,
};

/** Creates the server. It listens when its `listen` is called. */
export async function createWebhookServer({
  maxConnections = 4_000,
  timeouts: { headersMs, requestMs, lingerMs, checkMs } = TIMEOUTS,
  ...options
}: WebhookServerOptions): Promise<FastifyInstance> {
  const loggerInstance: FastifyBaseLogger = options.logger.child(
    { component: 'webhook' },
    { level: 'warn' },
  );
  const server = fastify({
    loggerInstance,
    // Requests of unknown clients are not logged individually. Results of deliveries are counted,
    // and logged at a limited rate.
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: requestMs,
    http: {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
    },
  });
  // Do not read the body of a request to another path, either.
  server.removeAllContentTypeParsers();
  const connections = new ConnectionLimit(server.server, maxConnections);
  server.addHook('preClose', async () => connections.end());
  server.addHook('onResponse', async ({ raw }) => {
    if (!raw.complete) setTimeout(() => raw.complete || raw.destroy(), lingerMs).unref();
  });
  await registerWebhook(server, options);
  return server;
}
