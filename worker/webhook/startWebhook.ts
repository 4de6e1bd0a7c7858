import type { Logger } from 'pino';
import { createWebhookServer } from './webhookServer.ts';
import type { WebhookOptions } from './webhook.ts';
import type { Metrics } from '../process/metrics.ts';
import { listen } from '../process/serviceProcess.ts';
import type { WebhookEndpoint } from '../settings/webhookSecrets.ts';

/** Running webhook server. */
export interface Webhook {
  /** URL of the server, without the path. */
  readonly address: string;
  /** Stops receiving. Resolves when all received deliveries are answered. */
  close(): Promise<void>;
}

/**
 * Receives deliveries, in the worker's process or in a separate one. Each gets 503 until there is a
 * connection to Temporal.
 * @throws StartupError
 */
export async function startWebhook(
  { secrets, host, port }: WebhookEndpoint,
  options: Pick<WebhookOptions, 'client' | 'taskQueue' | 'sets' | 'traces' | 'onJobStarted'> & {
    logger: Logger;
    metrics: Metrics;
  },
): Promise<Webhook> {
  const { metrics, ...rest } = options;
  const server = await createWebhookServer({
    ...rest,
    secrets,
    onDelivery: metrics.webhook,
    onJob: metrics.job,
  });
  return {
    address: await listen(server, { host, port }, 'HOLDFAST_WEBHOOK_ADDRESS'),
    close: async () => await server.close(),
  };
}
