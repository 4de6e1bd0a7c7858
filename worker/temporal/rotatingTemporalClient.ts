/**
 * Keeps the connection to Temporal and its client working while API keys and certificates are
 * rotated.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client, type ClientInterceptors } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { Logger } from 'pino';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { connectTemporal, type Connect, type TemporalConnection } from './connect.ts';
import { oneLine } from '../settings/config.ts';
import type { TemporalConfig } from '../settings/temporalConfig.ts';
import { CREDENTIALS_CHECK_MS, credentialsChange, withCredentials } from './temporalCredentials.ts';

/** Options of {@link RotatingTemporalClient}. */
export interface TemporalLinkOptions<C extends TemporalConnection> {
  /** Opens a new connection. */
  readonly connect: Connect<C>;
  readonly connection: C;
  /** Configuration of `connection`. */
  readonly temporal: TemporalConfig;
  /**
   * Reads the configuration again.
   * @throws Error with a one-line message
   */
  readonly readTemporal: () => TemporalConfig;
  readonly dataConverter: DataConverter;
  /** Interceptors of the client. @default none */
  readonly interceptors?: ClientInterceptors | undefined;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /**
   * Interval between two checks of the files (ms).
   * @default 10000
   */
  readonly intervalMs?: number;
}

/** Timeout of a new connection (ms). After it, the files are checked again. */
const RECONNECT_MS = 10_000;

/**
 * Connection to Temporal and its client. They are replaced when API keys or certificates are
 * rotated, so read them on each use.
 */
export class RotatingTemporalClient<C extends TemporalConnection> {
  readonly #options: TemporalLinkOptions<C>;
  readonly #stopping = new AbortController();
  #temporal: TemporalConfig;
  #connection: C;
  #client: Client;
  /** Previous connection, on which calls may be in progress. */
  #previous: C | undefined;
  #following: Promise<void> | undefined;

  constructor(options: TemporalLinkOptions<C>) {
    this.#options = options;
    this.#temporal = options.temporal;
    this.#connection = options.connection;
    this.#client = this.#clientOn(options.connection);
  }

  /** Current connection. */
  get connection(): C {
    return this.#connection;
  }

  /** Current client. */
  get client(): Client {
    return this.#client;
  }

  /**
   * Starts to apply changes of the files.
   * @param onConnection - called with each new connection
   */
  watchCredentials(onConnection: (connection: C) => void): void {
    this.#following ??= this.#follow(onConnection);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
    await this.#previous?.close();
    await this.#connection.close();
  }

  async #follow(onConnection: (connection: C) => void): Promise<void> {
    const { logger, intervalMs = CREDENTIALS_CHECK_MS } = this.#options;
    const { signal } = this.#stopping;
    let reported: string | undefined;
    for (;;) {
      await delay(intervalMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await this.#checkCredentials(onConnection);
        reported = undefined;
      } catch (error) {
        // The files may be half written, or their content not valid yet.
        const reason = oneLine(error);
        if (reason !== reported && !signal.aborted)
          logger.warn(
            `the changed credentials for Temporal cannot be used (${reason}); the previous ones stay in use, and the files are read again every ${intervalMs / 1_000} s`,
          );
        reported = reason;
      }
    }
  }

  async #checkCredentials(onConnection: (connection: C) => void): Promise<void> {
    const { readTemporal, logger } = this.#options;
    const next = withCredentials(this.#temporal, readTemporal());
    const change = credentialsChange(this.#temporal.connectionOptions, next.connectionOptions);
    if (change.kind === 'none') return;
    if (change.kind === 'apiKey') await this.#connection.setApiKey(change.apiKey);
    else await this.#reconnect(next, onConnection);
    this.#temporal = next;
    logger.info(
      change.kind === 'apiKey'
        ? 'Temporal API key rotated'
        : 'reconnected to Temporal with rotated certificates',
    );
  }

  async #reconnect(temporal: TemporalConfig, onConnection: (connection: C) => void): Promise<void> {
    const connection = await connectTemporal(temporal, {
      connect: this.#options.connect,
      timeoutMs: RECONNECT_MS,
      signal: this.#stopping.signal,
    });
    onConnection(connection);
    await this.#previous?.close();
    this.#previous = this.#connection;
    this.#connection = connection;
    this.#client = this.#clientOn(connection);
  }

  #clientOn(connection: C): Client {
    const { temporal, dataConverter, interceptors } = this.#options;
    return new Client({
      connection,
      namespace: temporal.namespace,
      dataConverter,
      ...omitUndefined({ interceptors }),
    });
  }
}
