/** Connection to Temporal for one command. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  Client,
  Connection,
  defaultGrpcRetryOptions,
  type ConnectionOptions,
} from '@temporalio/client';
import type { DataConverter, LoadedDataConverter } from '@temporalio/common';
import { loadClientConfigProfile, toClientOptions } from '@temporalio/envconfig';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { workflowUrl, workflowListUrl } from '../../core/domain/temporalUiLinks.ts';
import { CODEC_KEY_FILE } from '../../worker/codec/codecKeyFile.ts';
import { dataConverterOf } from '../../worker/codec/dataConverter.ts';
import type { ConfigProblem } from '../../worker/settings/configError.ts';
import { temporalVariables } from '../../worker/settings/temporalConfig.ts';
import { tracingEnabled } from '../../worker/settings/traces.ts';
import {
  CREDENTIALS_CHECK_MS,
  credentialsChange,
} from '../../worker/temporal/temporalCredentials.ts';
import { safeRetries } from '../../worker/temporal/safeRetries.ts';
import type { Tracing } from '../../worker/tracing/startTracing.ts';
import { CliError } from './exit.ts';
import { isUndelivered, toCliError, unreachable, type ErrorSubject } from './temporalErrors.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Options that every command has. */
export interface ConnectionFlags {
  readonly address?: string;
  readonly namespace?: string;
  readonly profile?: string;
  readonly uiUrl?: string;
  readonly taskQueue?: string;
}

type Env = Readonly<Record<string, string | undefined>>;

type ClientOptions = ConnectionOptions & { readonly apiKey?: string };

/** Address of Temporal, with the setting that contains it. */
export interface ConnectionSettings {
  readonly options: ClientOptions;
  readonly server: string;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Base address of the Temporal UI, without a slash at its end. */
  readonly ui: string | undefined;
}

/** Timeout of connecting (ms). A wrong address fails within seconds. */
const CONNECT_TIMEOUT_MS = 4_000;
/** Timeout of one call (ms). */
const CALL_TIMEOUT_MS = 10_000;
/**
 * Time to wait before calling a workflow again that does not accept messages yet (ms), for example
 * because its input is not validated.
 */
const DELIVERY_RETRY_MS = 100;

/**
 * Returns the settings of the connection. Options take precedence over the environment, the
 * environment over the profile, and the profile over the defaults
 * (https://docs.temporal.io/develop/environment-configuration).
 * @throws CliError `usage`
 */
export function connectionSettings(flags: ConnectionFlags, env: Env): ConnectionSettings {
  let overrideEnvVars: Record<string, string>;
  try {
    overrideEnvVars = temporalVariables(env);
  } catch (error) {
    throw new CliError('usage', (error as Error).message, { cause: error });
  }
  let profile: ReturnType<typeof toClientOptions>;
  try {
    profile = toClientOptions(
      loadClientConfigProfile({ overrideEnvVars, ...omitUndefined({ profile: flags.profile }) }),
    );
  } catch (error) {
    const setting =
      flags.profile === undefined ? 'TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE' : '--profile';
    throw new CliError(
      'usage',
      `${setting}: ${errorMessage(error)}; "temporal config list" shows the profiles`,
      { cause: error },
    );
  }
  const address = flags.address ?? profile.connectionOptions.address ?? 'localhost:7233';
  const sources: readonly (readonly [source: string, address: string | undefined])[] = [
    ['--address', flags.address],
    ['TEMPORAL_ADDRESS', overrideEnvVars['TEMPORAL_ADDRESS']],
    ['the profile', profile.connectionOptions.address],
  ];
  const source = sources.find(([, value]) => value !== undefined)?.[0] ?? 'the default';
  checkAddress(address, source);
  const { apiKey, tls, metadata } = profile.connectionOptions;
  return {
    options: {
      address,
      connectTimeout: CONNECT_TIMEOUT_MS,
      ...omitUndefined({ tls }),
      ...(typeof apiKey === 'string' ? { apiKey } : {}),
      ...(metadata === undefined ? {} : { metadata: metadata as Record<string, string> }),
    },
    server: `${address} (from ${source})`,
    namespace: flags.namespace ?? profile.namespace ?? 'default',
    taskQueue: flags.taskQueue ?? (env['HOLDFAST_TASK_QUEUE'] || 'holdfast'),
    ui: uiBase(
      flags.uiUrl ?? (env['HOLDFAST_TEMPORAL_UI_URL'] || undefined),
      flags.uiUrl === undefined ? 'HOLDFAST_TEMPORAL_UI_URL' : '--ui-url',
    ),
  };
}

function checkAddress(address: string, source: string): void {
  const [, port] = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::(\d{1,5}))?$/.exec(address) ?? [
    undefined,
    'none',
  ];
  if (port === 'none' || Number(port ?? 1) > 65_535 || Number(port ?? 1) < 1) {
    throw new CliError(
      'usage',
      `${source}: "${address}" is not an address of a Temporal server; write host:port without a scheme, such as localhost:7233`,
    );
  }
}

function uiBase(url: string | undefined, source: string): string | undefined {
  if (url === undefined) return undefined;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new CliError(
      'usage',
      `${source}: "${url}" is not the URL of a Temporal UI; write for example http://localhost:8233`,
    );
  }
  return url.replace(/\/+$/, '');
}

/**
 * Opens a connection with the settings, and a client for it.
 * @throws CliError
 */
async function connect(
  settings: ConnectionSettings,
  dataConverter: DataConverter,
  tracing: Tracing | undefined,
): Promise<Client> {
  try {
    const connection = await Connection.connect({
      ...settings.options,
      interceptors: [safeRetries(defaultGrpcRetryOptions())],
    });
    return new Client({
      connection,
      namespace: settings.namespace,
      dataConverter,
      ...omitUndefined({ interceptors: tracing?.client }),
    });
  } catch (error) {
    const known = toCliError(error, settings);
    // Before there is a connection, every error is about reaching the server, unless the server has
    // rejected the request.
    throw known.code === 'failed' ? unreachable(settings, known.message, error) : known;
  }
}

/**
 * Returns the data converter for the environment.
 * @throws CliError `usage`
 */
function dataConverterIn(env: Env): DataConverter {
  try {
    return dataConverterOf(env[CODEC_KEY_FILE] || undefined);
  } catch (error) {
    throw new CliError('usage', (error as Error).message, { cause: error });
  }
}

/**
 * Starts tracing if the environment enables it. Otherwise OpenTelemetry is not loaded.
 * @returns `undefined` if tracing is not enabled
 */
async function tracingIn(
  env: Env,
  onProblem: SessionOptions['onProblem'],
): Promise<Tracing | undefined> {
  const warnings: ConfigProblem[] = [];
  const wanted = tracingEnabled(env, warnings);
  for (const { setting, message } of warnings) onProblem?.(`${setting}: ${message}`);
  return wanted
    ? (await import('../../worker/tracing/startTracing.ts')).startTracing('holdfast', (message) =>
        onProblem?.(message),
      )
    : undefined;
}

interface Opened {
  readonly client: Client;
  readonly settings: ConnectionSettings;
  readonly dataConverter: DataConverter;
  readonly tracing: Tracing | undefined;
  /**
   * Value of `TRACEPARENT`, the trace of the caller
   * (https://opentelemetry.io/docs/specs/otel/context/env-carriers/).
   */
  readonly trace: string | undefined;
  readonly read: () => ConnectionSettings;
}

/** Options of a session. */
export interface SessionOptions {
  /**
   * Called when rotated credentials cannot be used (the previous ones stay in use), or when traces
   * cannot be exported.
   * @default problems are not reported
   */
  readonly onProblem?: (message: string) => void;
  /**
   * Interval between two checks of the credential files (ms).
   * @default 10000
   */
  readonly checkMs?: number;
}

/** Open connection to Temporal. Close it at the end. */
export class Session {
  readonly settings: ConnectionSettings;
  readonly #read: () => ConnectionSettings;
  readonly #dataConverter: DataConverter;
  readonly #tracing: Tracing | undefined;
  readonly #trace: string | undefined;
  readonly #checks: NodeJS.Timeout;
  /** Previous connections, on which calls may be in progress. */
  readonly #retired: Client[] = [];
  #options: ClientOptions;
  #client: Client;
  #checking = false;
  #lastProblem: string | undefined;

  private constructor(
    { client, settings, dataConverter, tracing, trace, read }: Opened,
    { onProblem, checkMs = CREDENTIALS_CHECK_MS }: SessionOptions,
  ) {
    this.settings = settings;
    this.#client = client;
    this.#dataConverter = dataConverter;
    this.#tracing = tracing;
    this.#trace = trace;
    this.#options = settings.options;
    this.#read = read;
    this.#checks = setInterval(
      () => void this.#check().catch((error: unknown) => this.#reportProblem(error, onProblem)),
      checkMs,
    ).unref();
  }

  /**
   * Connects to Temporal within {@link CONNECT_TIMEOUT_MS}.
   * @throws CliError `usage` or `unreachable`
   */
  static async open(
    flags: ConnectionFlags,
    env: Env,
    options: SessionOptions = {},
  ): Promise<Session> {
    const read = (): ConnectionSettings => connectionSettings(flags, env);
    const settings = read();
    const dataConverter = dataConverterIn(env);
    const tracing = await tracingIn(env, options.onProblem);
    const client = await connect(settings, dataConverter, tracing);
    return new Session(
      { client, settings, dataConverter, tracing, trace: env['TRACEPARENT'], read },
      options,
    );
  }

  /** Current client. It changes when certificates are rotated, so do not keep it. */
  get client(): Client {
    return this.#client;
  }

  /** Data converter of the client, for payloads that the client returns encoded. */
  get converter(): LoadedDataConverter {
    return this.#client.options.loadedDataConverter;
  }

  /**
   * Applies rotated credentials.
   * @throws CliError
   */
  async #check(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    try {
      const { apiKey, tls } = this.#read().options;
      const { apiKey: _apiKey, tls: _tls, ...server } = this.#options;
      const options: ClientOptions = { ...server, ...omitUndefined({ apiKey, tls }) };
      const change = credentialsChange(this.#options, options);
      if (change.kind === 'apiKey')
        (this.#client.connection as Connection).setApiKey(change.apiKey);
      if (change.kind === 'reconnect') {
        const client = await connect(
          { ...this.settings, options },
          this.#dataConverter,
          this.#tracing,
        );
        this.#retired.push(this.#client);
        this.#client = client;
      }
      this.#options = options;
    } finally {
      this.#checking = false;
    }
  }

  /**
   * Runs calls that normally take little time.
   * @param timeoutMs - timeout of all of them together (ms)
   * @throws CliError
   */
  async call<T>(
    fn: (client: Client) => Promise<T>,
    more: { workflowId?: string; timeoutMs?: number } = {},
  ): Promise<T> {
    try {
      return await this.attempt(fn, more.timeoutMs);
    } catch (error) {
      throw toCliError(error, this.errorSubject(more.workflowId));
    }
  }

  /** Runs calls like {@link call}, but throws the errors of the client. */
  attempt<T>(fn: (client: Client) => Promise<T>, timeoutMs = CALL_TIMEOUT_MS): Promise<T> {
    const call = (): Promise<T> =>
      this.client.connection.withDeadline(Date.now() + timeoutMs, () => fn(this.client));
    return this.#tracing === undefined ? call() : this.#tracing.within(this.#trace, call);
  }

  /**
   * Runs calls like {@link attempt}, but retries while the workflow does not accept the message.
   * @param timeoutMs - timeout of all attempts together (ms)
   */
  async attemptUntilDelivered<T>(
    fn: (client: Client) => Promise<T>,
    timeoutMs: number,
  ): Promise<T> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      try {
        return await this.attempt(fn, deadline - performance.now());
      } catch (error) {
        if (!isUndelivered(error) || performance.now() + DELIVERY_RETRY_MS >= deadline) throw error;
        await delay(DELIVERY_RETRY_MS);
      }
    }
  }

  /** Sends an update, with retries as in {@link attemptUntilDelivered}. */
  async update<T>(workflowId: string, name: string, body: unknown, timeoutMs: number): Promise<T> {
    // The name is passed as a string, because the SDK's types do not support an optional argument.
    return await this.attemptUntilDelivered(
      (client) =>
        client.workflow.getHandle(workflowId).executeUpdate<T, [unknown]>(name, { args: [body] }),
      timeoutMs,
    );
  }

  errorSubject(workflowId?: string): ErrorSubject {
    return {
      server: this.settings.server,
      namespace: this.settings.namespace,
      ...omitUndefined({ workflowId }),
    };
  }

  /** Returns the address of a workflow's page, if the address of the UI is known. */
  link(workflowId: string, runId: string | undefined): string | undefined {
    const { ui, namespace } = this.settings;
    return ui === undefined ? undefined : workflowUrl(ui, namespace, workflowId, runId);
  }

  /**
   * Returns the address of the page that lists the result of a filter, if the address of the UI is
   * known.
   * @param query - list filter (https://docs.temporal.io/list-filter)
   */
  listLink(query: string): string | undefined {
    const { ui, namespace } = this.settings;
    return ui === undefined ? undefined : workflowListUrl(ui, namespace, query);
  }

  #reportProblem(error: unknown, onProblem: SessionOptions['onProblem']): void {
    const { message } = error as Error;
    if (message !== this.#lastProblem)
      onProblem?.(
        `the changed credentials for Temporal cannot be used, the previous ones stay in use: ${message}`,
      );
    this.#lastProblem = message;
  }

  async close(): Promise<void> {
    clearInterval(this.#checks);
    for (const { connection } of [...this.#retired, this.#client]) await connection.close();
    await this.#tracing?.close();
  }
}
