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
}

/**
 * Timeout of the request headers (ms). GitHub sends a delivery in one piece and waits 10 s for the
 * response.
 */
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
/**
 * Time for which the rest of a body is read and discarded after the response (ms). A connection that
 * is closed at once may lose the response.
 */
const LINGER_MS = 1_000;

/** Creates the server. It listens when its `listen` is called. */
export async function createWebhookServer({
  maxConnections = 4_000,
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
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Node looks at its timeouts every 30 s by default.
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: 1_000,
    },
  });
  // Of a request to another path no body is read, either.
  server.removeAllContentTypeParsers();
  const connections = new ConnectionLimit(server.server, maxConnections);
  server.addHook('preClose', async () => connections.end());
  server.addHook('onResponse', async ({ raw }) => {
    if (!raw.complete) setTimeout(() => raw.complete || raw.destroy(), LINGER_MS).unref();
  });
  await registerWebhook(server, options);
  return server;
}
