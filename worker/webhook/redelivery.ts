/** Events that the webhook missed, sent again by GitHub: it does not do that by itself. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Credentials } from '../../activities/ciServers/credentials.ts';
import type { CiServers } from '../../activities/ports.ts';

export interface RedeliveryOptions {
  readonly credentials: Credentials;
  readonly ciServers: CiServers;
  /** Between two rounds, in ms; each a tenth longer or shorter, so that replicas do not ask together. */
  readonly intervalMs: number;
  /** Are events accepted now? There is no point in having them sent again before. */
  readonly ready: () => Promise<boolean>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly onRedelivered?: (credential: string, count: number) => void;
}

/** In one round with one credential. GitHub allows 180 such requests a minute. */
const MAX_REDELIVERIES = 150;

/**
 * Goes round until it is stopped: with each GitHub App whose credential is known, has failed deliveries of the last three days sent
 * again. Several replicas may do so: sets bear repeated events.
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
  const names = oneOfEachApp(credentials);
  // The first round soon: an event may have been missed because this process was not there.
  for (
    let pauseMs = Math.min(intervalMs, 10_000);
    names.length > 0 && !signal.aborted;
    pauseMs = intervalMs
  ) {
    await delay(pauseMs * (0.9 + Math.random() * 0.2), undefined, { signal }).catch(
      () => undefined,
    );
    if (signal.aborted || !(await ready().catch(() => false))) continue;
    for (const name of names) {
      try {
        const done = await ciServers
          .get(name)
          .redeliverFailed?.({ maxRedeliveries: MAX_REDELIVERIES }, signal);
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
            'failed webhook deliveries cannot be looked for; trying again at the next round',
          );
      }
    }
  }
}

/** An App has one webhook, whatever the number of its installations. */
function oneOfEachApp(credentials: Credentials): string[] {
  const byApp = new Map<string, string>();
  for (const [name, credential] of Object.entries(credentials)) {
    const app = credential.type === 'app' ? `${credential.apiUrl} ${credential.appId}` : undefined;
    if (app !== undefined && !byApp.has(app)) byApp.set(app, name);
  }
  return [...byApp.values()];
}
