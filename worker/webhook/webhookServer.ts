/** HTTP server of the deliveries, on a port of its own: no client is trusted without a signature. */
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
  /** @default 5 s for headers, 10 s for a request, 1 s for the rest of a body, checked every second */
  readonly timeouts?: ConnectionTimeouts;
}

/** Time limits of the server's connections (ms). */
export interface ConnectionTimeouts {
  /** Until the headers of a request have arrived. */
  readonly headersMs: number;
  /** Until its body has arrived. GitHub sends a delivery in one piece and waits 10 s in all. */
  readonly requestMs: number;
  /**
   * Time for which the rest of a body is read and discarded after the response. A connection that
   * is closed at once may lose the response.
   */
  readonly lingerMs: number;
  /** Interval at which Node checks these limits; 30 s by default. */
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
    // What strangers send is no news; what becomes of deliveries is counted, and told now and then.
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: requestMs,
    http: {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
    },
  });
  // Of a request to another path no body is read, either.
  server.removeAllContentTypeParsers();
  const connections = new ConnectionLimit(server.server, maxConnections);
  server.addHook('preClose', async () => connections.end());
  server.addHook('onResponse', async ({ raw }) => {
    if (!raw.complete) setTimeout(() => raw.complete || raw.destroy(), lingerMs).unref();
  });
  await registerWebhook(server, options);
  return server;
}
