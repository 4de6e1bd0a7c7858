/** Common frame of the worker's and the webhook's process, from settings to exit status. */
import type { FastifyInstance } from 'fastify';
import type { ClientInterceptors, ConnectionLike } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { Logger } from 'pino';
import type { Finding } from '../checks/finding.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { dataConverterOf } from '../codec/dataConverter.ts';
import type { PayloadRejection } from '../codec/encryptionCodec.ts';
import {
  TemporalUnreachableError,
  connectTemporal,
  type Connect,
  type TemporalConnection,
} from '../temporal/connect.ts';
import { EXIT_STATUS } from './exitStatus.ts';
import { createLogger } from './logger.ts';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import { ConfigError } from '../settings/configError.ts';
import { listenForShutdown, type StopSignal } from './stopSignal.ts';
import { RotatingTemporalClient } from '../temporal/rotatingTemporalClient.ts';
import type { Tracing } from '../tracing/startTracing.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Environment of a service process. */
export interface RunOptions {
  /** @default process.env */
  readonly env?: Env;
  /**
   * Receives each line of the reason why the process cannot start.
   * @default writes to standard error
   */
  readonly writeError?: (line: string) => void;
}

/** Error for a process that cannot start. Each line names a setting or an object, and the fix. */
class StartupError extends Error {
  override readonly name = 'CannotStart';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** A service with its own process, such as the worker or the webhook. */
export interface Service<C> {
  /** Name of the service, for its lines on standard error. */
  readonly name: string;
  /**
   * Reads the configuration.
   * @throws ConfigError
   */
  readonly load: (env: Env) => C;
  /**
   * Runs the service.
   * @param onClose - registers a function to call at the end, in reverse order
   * @returns the exit status
   * @throws StartupError
   */
  readonly serve: (
    config: C,
    logger: Logger,
    stop: StopSignal,
    onClose: (close: () => Promise<unknown>) => void,
  ) => Promise<number>;
}

/**
 * Runs a service until SIGTERM or SIGINT.
 * @returns the exit status, see {@link EXIT_STATUS}
 */
export async function runService<C extends Pick<HoldfastConfig, 'log' | 'warnings'>>(
  service: Service<C>,
  { env = process.env, writeError = (line) => process.stderr.write(`${line}\n`) }: RunOptions,
): Promise<number> {
  try {
    return await run(service, readConfig(service, env));
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    for (const line of error.lines) writeError(`holdfast ${service.name}: ${line}`);
    return EXIT_STATUS.cannotStart;
  }
}

function readConfig<C>({ load }: Service<C>, env: Env): C {
  try {
    return load(env);
  } catch (error) {
    if (error instanceof ConfigError) throw new StartupError(error.message.split('\n'));
    throw error;
  }
}

async function run<C extends Pick<HoldfastConfig, 'log' | 'warnings'>>(
  { serve }: Service<C>,
  config: C,
): Promise<number> {
  const logger = createLogger(config.log);
  for (const { setting, message } of config.warnings) logger.warn(`${setting}: ${message}`);
  const closers: (() => Promise<unknown>)[] = [];
  const stop = listenForShutdown();
  try {
    return await serve(config, logger, stop, (close) => closers.unshift(close));
  } catch (error) {
    if (stop.name === undefined) throw error;
    // Errors with the reason of the signal mean that only a wait has ended.
    const reasons: unknown[] = [error, (error as Error).cause];
    if (!reasons.includes(stop.signal.reason)) logger.warn({ err: error }, 'stopped with an error');
    return EXIT_STATUS[stop.name];
  } finally {
    for (const close of closers)
      await close().catch((error: unknown) => logger.warn({ err: error }, 'closing failed'));
    stop.dispose();
  }
}

/**
 * Starts a server.
 * @param setting - setting that contains the address
 * @returns the URL of the server
 * @throws StartupError
 */
export async function listen(
  server: FastifyInstance,
  address: HoldfastConfig['http'],
  setting: string,
): Promise<string> {
  try {
    return await server.listen(address);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new StartupError([
      `${setting}: cannot listen on ${address.host}:${address.port} (${code}): set another address or port`,
    ]);
  }
}

/**
 * Returns the data converter for the settings.
 * @throws StartupError if the key file cannot be read
 */
export function readDataConverter(
  {
    codecKeyFile,
    encryptionRequired,
  }: Pick<HoldfastConfig, 'codecKeyFile'> & Partial<Pick<HoldfastConfig, 'encryptionRequired'>>,
  logger: Logger,
): DataConverter {
  const required = encryptionRequired && {
    ...encryptionRequired,
    onRejected: (rejection: PayloadRejection) => logger.warn(rejection, 'payload rejected'),
  };
  try {
    return dataConverterOf(codecKeyFile, {
      onUnreadable: (error) => logger.error(error.message),
      ...omitUndefined({ required }),
    });
  } catch (error) {
    throw new StartupError([oneLine(error)]);
  }
}

/**
 * Starts tracing if the settings enable it. Otherwise OpenTelemetry is not loaded.
 * @returns `undefined` if tracing is not enabled
 */
export async function traceProcess(
  service: string,
  { traces }: Pick<HoldfastConfig, 'traces'>,
  logger: Logger,
  onClose: (close: () => Promise<unknown>) => void,
): Promise<Tracing | undefined> {
  if (!traces) return undefined;
  const { startTracing } = await import('../tracing/startTracing.ts');
  const tracing = startTracing(service, (message) => logger.warn(message));
  onClose(async () => await tracing.close());
  return tracing;
}

/**
 * Connects to Temporal.
 * @throws StartupError
 */
export async function openTemporalClient<C extends TemporalConnection>(
  connect: Connect<C>,
  config: Pick<HoldfastConfig, 'temporal' | 'readTemporal' | 'connectTimeoutMs'>,
  dataConverter: DataConverter,
  logger: Logger,
  signal: AbortSignal,
  interceptors?: ClientInterceptors,
): Promise<RotatingTemporalClient<C>> {
  const { temporal, readTemporal, connectTimeoutMs: timeoutMs } = config;
  try {
    const connection = await connectTemporal(temporal, { connect, timeoutMs, logger, signal });
    return new RotatingTemporalClient({
      connect,
      connection,
      temporal,
      readTemporal,
      dataConverter,
      interceptors,
      logger,
    });
  } catch (error) {
    if (error instanceof TemporalUnreachableError) throw new StartupError([error.message]);
    throw error;
  }
}

/**
 * Checks whether Temporal responds.
 * @throws the error of the connection if it does not
 */
export async function isTemporalReachable(connection: ConnectionLike): Promise<boolean> {
  await connection.withDeadline(
    Date.now() + 2_000,
    async () => await connection.workflowService.getSystemInfo({}),
  );
  return true;
}

/**
 * Logs the warnings among the findings.
 * @throws StartupError if there is an error among them
 */
export function logFindings(findings: readonly Finding[], logger: Logger): void {
  const text = (finding: Finding): string =>
    finding.fix === undefined ? finding.message : `${finding.message}; fix: ${finding.fix}`;
  for (const finding of findings) if (finding.level === 'warning') logger.warn(text(finding));
  const errors = findings.filter((finding) => finding.level === 'error');
  if (errors.length > 0) throw new StartupError(errors.map(text));
}
