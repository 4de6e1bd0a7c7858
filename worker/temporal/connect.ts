/**
 * Connects to Temporal at the start of a process. It retries, because the server may start after
 * the worker.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectionLike } from '@temporalio/client';
import type { Logger } from 'pino';
import { oneLine } from '../settings/config.ts';
import type { TemporalConfig } from '../settings/temporalConfig.ts';

/**
 * Error for a Temporal server that did not answer in time. Its one-line message names the setting
 * and the fix.
 */
export class TemporalUnreachableError extends Error {
  override readonly name = 'TemporalUnreachableError';
}

/** Connection of the client or of the worker SDK. */
export interface TemporalConnection extends ConnectionLike {
  setApiKey(apiKey: string): void | Promise<void>;
}

/** Makes one attempt to connect. */
export type Connect<C extends TemporalConnection> = (
  options: TemporalConfig['connectionOptions'],
) => Promise<C>;

/** Options of {@link connectTemporal}. */
export interface ConnectOptions<C extends TemporalConnection> {
  readonly connect: Connect<C>;
  /** Time after which connecting fails (ms). 0 allows one attempt. */
  readonly timeoutMs: number;
  readonly logger?: Pick<Logger, 'warn'>;
  readonly signal?: AbortSignal;
}

/**
 * Maximum duration of one attempt (ms). Packets to a wrong address are often dropped without a
 * response.
 */
const TRY_MS = 10_000;

/**
 * Connects to Temporal, with retries until the timeout.
 * @throws TemporalUnreachableError if no attempt succeeds in time
 */
export async function connectTemporal<C extends TemporalConnection>(
  temporal: TemporalConfig,
  { connect, timeoutMs, logger, signal }: ConnectOptions<C>,
): Promise<C> {
  const deadline = Date.now() + timeoutMs;
  for (let pauseMs = 500; ; pauseMs = Math.min(pauseMs * 2, 5_000)) {
    try {
      return await withTimeout(
        Math.min(TRY_MS, Math.max(1_000, deadline - Date.now())),
        connect(temporal.connectionOptions),
      );
    } catch (error) {
      signal?.throwIfAborted();
      const why = reason(error);
      const leftMs = deadline - Date.now();
      if (leftMs <= 0) throw unreachable(temporal, why, timeoutMs);
      logger?.warn(
        { address: temporal.address },
        `no Temporal server answers at ${temporal.address} (${why}); trying for another ${Math.ceil(leftMs / 1_000)} s`,
      );
      await delay(Math.min(pauseMs, leftMs), undefined, signal ? { signal } : {});
    }
  }
}

function unreachable(
  { address }: TemporalConfig,
  reason: string,
  timeoutMs: number,
): TemporalUnreachableError {
  return new TemporalUnreachableError(
    `TEMPORAL_ADDRESS: no Temporal server answers at ${address} within ${timeoutMs / 1_000} s (${reason}): set TEMPORAL_ADDRESS to your server's host:port, or start one with "temporal server start-dev"`,
  );
}

async function withTimeout<T>(ms: number, promise: Promise<T>): Promise<T> {
  const timeout = new AbortController();
  try {
    return await Promise.race([
      promise,
      delay(ms, undefined, { signal: timeout.signal }).then(() => {
        throw new Error(`no answer in ${ms / 1_000} s`);
      }),
    ]);
  } finally {
    timeout.abort();
  }
}

/**
 * Returns the cause of a failed connection. Errors of gRPC's transports are nested, and the
 * innermost one is informative. The client in JavaScript reports the code of the system.
 */
function reason(error: unknown): string {
  const text = oneLine(error);
  const [code] =
    /\b(?:ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ETIMEDOUT)\b/.exec(
      text,
    ) ?? [];
  const known =
    /(connection refused|dns error|failed to lookup address|certificate[^,"')]*|unauthorized|permission denied|invalid (?:uri|url|port)[^,"')]*|no answer in [\d.]+ s)/i.exec(
      text,
    );
  return code ?? known?.[1]?.toLowerCase() ?? text.slice(0, 160);
}
