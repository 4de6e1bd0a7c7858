/** Requests the redelivery of missed events from CI servers that do not redeliver by themselves. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Credentials } from '../../activities/ciServers/credentials.ts';
import type { CiServers } from '../../activities/ports/ciServer.ts';
import { DELIVERY_FORMATS } from './servers/deliveryFormats.ts';

/** Options of {@link startRedelivery}. */
export interface RedeliveryOptions {
  readonly credentials: Credentials;
  readonly ciServers: CiServers;
  /**
   * Interval between two rounds (ms). It varies by up to a tenth, so that replicas do not run at
   * the same time.
   */
  readonly intervalMs: number;
  /** Returns whether events are accepted now. Redelivery waits until they are. */
  readonly ready: () => Promise<boolean>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly onRedelivered?: (credential: string, count: number) => void;
}

/**
 * Requests redelivery until it is stopped: in each round once for every webhook whose credential is
 * known. Several replicas may do so: sets tolerate repeated events.
 */
export function startRedelivery(options: RedeliveryOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const running = goRound(options, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function goRound(options: RedeliveryOptions, signal: AbortSignal): Promise<void> {
  const { credentials, ciServers, intervalMs, ready, logger, onRedelivered } = options;
  const webhooks = oneOfEachWebhook(credentials);
  // The first round starts soon, because events may have been missed while this process was not
  // running.
  for (
    let pauseMs = Math.min(intervalMs, 10_000);
    webhooks.length > 0 && !signal.aborted;
    pauseMs = intervalMs
  ) {
    await delay(pauseMs * (0.9 + Math.random() * 0.2), undefined, { signal }).catch(
      () => undefined,
    );
    if (signal.aborted || !(await ready().catch(() => false))) continue;
    for (const { name, maxRedeliveries } of webhooks) {
      try {
        const done = await ciServers.get(name).redeliverFailed?.({ maxRedeliveries }, signal);
        if (done === undefined || done.redelivered === 0) continue;
        onRedelivered?.(name, done.redelivered);
        logger.info(
          { credential: name, ...done },
          'webhook deliveries that had failed are being sent again',
        );
      } catch (error) {
        if (!signal.aborted)
          logger.warn(
            { err: error, credential: name },
            'failed to list failed webhook deliveries; retrying at the next round',
          );
      }
    }
  }
}

/** Returns one credential for each webhook, which several credentials may share. */
function oneOfEachWebhook(credentials: Credentials): { name: string; maxRedeliveries: number }[] {
  const byWebhook = new Map<string, { name: string; maxRedeliveries: number }>();
  for (const [name, credential] of Object.entries(credentials)) {
    const rules = DELIVERY_FORMATS.find(({ server }) => server === credential.server)?.redelivery;
    const webhook = rules?.webhookOf(credential);
    if (rules === undefined || webhook === undefined) continue;
    const key = `${credential.server} ${webhook}`;
    if (!byWebhook.has(key)) byWebhook.set(key, { name, maxRedeliveries: rules.maxPerRound });
  }
  return [...byWebhook.values()];
}
