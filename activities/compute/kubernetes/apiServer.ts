/**
 * Sends requests to the API server. The KubeConfig of client-node provides the address and the
 * credentials; undici sends the requests.
 *
 * The generated API of client-node 2.0.1 is not used, for three reasons. It creates a new undici
 * Agent, and so a new TLS connection, for every request (KubeConfig.createDispatcher). It drops
 * fields that its model does not know, so a misspelled field of a pod template would be lost
 * without an error. Its calls accept neither a signal nor a timeout.
 */
import type https from 'node:https';
import { createSecureContext, type ConnectionOptions } from 'node:tls';
import type { KubeConfig } from '@kubernetes/client-node';
import { Agent, ProxyAgent, request, type buildConnector, type Dispatcher } from 'undici';
import { systemClock } from '../../ciServers/clock.ts';
import { CircuitBreaker, OUTAGE_RETRY_MS } from '../../shared/circuitBreaker.ts';
import { ComputeError } from '../../ports/computeError.ts';
import { toOutage } from './errors.ts';
import { ServerClock } from './serverClock.ts';

/** Verbs of requests to the API server, as RBAC names them. */
export type ApiVerb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete';

/** Metrics of one request. */
export interface ApiRequestMetrics {
  readonly verb: ApiVerb;
  /** Resource, such as `pods` or `secrets`. */
  readonly resource: string;
  /** HTTP status. `undefined` if there was no response. */
  readonly status: number | undefined;
  /** Time until the whole response was read (ms). For a watch: until it was open. */
  readonly ms: number;
}

/** One request to the API server. */
export interface ApiCall {
  readonly verb: ApiVerb;
  readonly resource: string;
  /** Path below the server's address. Its variable parts are encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: object;
  /**
   * Whether to read only the metadata of objects. Their kind is then PartialObjectMetadata.
   * @default false
   */
  readonly metadataOnly?: boolean;
  /**
   * Whether the API server forwards the request to a node. A failure of the node is not an outage
   * of the server.
   * @default false
   */
  readonly ofNode?: boolean;
  readonly signal?: AbortSignal;
}

/** Options of the connections to the API server. */
export interface ApiServerOptions {
  /**
   * Timeout of one request (ms).
   * @default 30000
   */
  readonly timeoutMs?: number;
  /**
   * Maximum open connections. Further requests queue in this process.
   * @default 32
   */
  readonly connections?: number;
  readonly onRequest?: (measure: ApiRequestMetrics) => void;
}

/**
 * Accept headers for metadata:
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
 */
const METADATA_ONLY = {
  object: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
} as const;

/**
 * Response with another status than 2xx, or one that is not from the API server. It has the shape
 * of client-node's ApiException, but its message does not contain the whole response.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: number;
  /** Text of the response. A Status object, if it is from the API server itself. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string | undefined>>;

  constructor(code: number, body: string, headers: Readonly<Record<string, string | undefined>>) {
    super(`HTTP ${code}`);
    this.code = code;
    this.body = body;
    this.headers = headers;
  }
}

/** Timeout of a new connection (ms). */
const CONNECT_TIMEOUT_MS = 10_000;
const METHODS: Readonly<Record<ApiVerb, Dispatcher.HttpMethod>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  patch: 'PATCH',
  delete: 'DELETE',
};

/**
 * Client of one API server. Its requests pass a circuit breaker: while the server does not answer,
 * few requests are sent and the others are rejected.
 */
export class ApiServer {
  readonly #config: KubeConfig;
  readonly #timeoutMs: number;
  readonly #connections: number;
  readonly #onRequest: (measure: ApiRequestMetrics) => void;
  readonly #breaker = new CircuitBreaker(systemClock, breakerOpenError);
  readonly #clock = new ServerClock();
  #dispatcher: { readonly identity: string; readonly agent: Dispatcher } | undefined;

  constructor(config: KubeConfig, options: ApiServerOptions = {}) {
    this.#config = config;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#connections = options.connections ?? 32;
    this.#onRequest = options.onRequest ?? (() => undefined);
  }

  /** Returns whether the server answers, as far as this process knows. */
  isReachable(): boolean {
    return this.#breaker.closed;
  }

  /** Returns the time of the server (ms since the epoch), according to its responses. */
  now(): number {
    return this.#clock.now();
  }

  /**
   * Sends a request.
   * @returns the parsed response. The caller states its type
   * @throws ApiError for every response other than 2xx with an object
   * @throws the error of undici if there is no response; a TimeoutError after the timeout
   * @throws ComputeError `unavailable` with `retryAfterMs` during an outage of the server
   */
  async call<T>(call: ApiCall): Promise<T> {
    const text = await this.#pastBreaker(call, async () => await this.#text(call));
    const answer = parse(text);
    // All objects of the API server have a kind. Without this check, a login page could be taken
    // for a pod with other data.
    if (typeof answer?.kind !== 'string') throw new ApiError(200, text, {});
    return answer as T;
  }

  async #text(call: ApiCall): Promise<string> {
    const startedAt = performance.now();
    let status: number | undefined;
    const limit = new AbortController();
    const timer = setTimeout(
      () => limit.abort(new DOMException(`no answer within ${this.#timeoutMs} ms`, 'TimeoutError')),
      this.#timeoutMs,
    );
    const signal = call.signal ? AbortSignal.any([limit.signal, call.signal]) : limit.signal;
    try {
      const sentAtMs = Date.now();
      const answer = await this.#send(call, signal, {});
      status = answer.statusCode;
      this.#clock.onResponse(answer.headers['date'], sentAtMs);
      const text = await answer.body.text();
      if (status >= 200 && status < 300) return text;
      throw new ApiError(status, text, flattenHeaders(answer.headers));
    } finally {
      clearTimeout(timer);
      this.#onRequest({
        verb: call.verb,
        resource: call.resource,
        status,
        ms: performance.now() - startedAt,
      });
    }
  }

  /**
   * Opens a stream. The signal ends it.
   * @param watchTimeoutMs - time without data after which the stream fails with undici's
   * BodyTimeoutError (ms). 0 sets no limit
   */
  async open(
    call: ApiCall & { readonly signal: AbortSignal },
    watchTimeoutMs: number,
  ): Promise<AsyncIterable<Buffer>> {
    return await this.#pastBreaker(call, async () => await this.#open(call, watchTimeoutMs));
  }

  async #open(
    call: ApiCall & { readonly signal: AbortSignal },
    watchTimeoutMs: number,
  ): Promise<AsyncIterable<Buffer>> {
    const startedAt = performance.now();
    let status: number | undefined;
    try {
      const answer = await this.#send(call, call.signal, {
        headersTimeout: this.#timeoutMs,
        bodyTimeout: watchTimeoutMs,
      });
      status = answer.statusCode;
      // 204: there is nothing to stream, as for the log of a pod that is not on a node yet.
      if (status === 200 || status === 204) return answer.body;
      throw new ApiError(status, await answer.body.text(), flattenHeaders(answer.headers));
    } finally {
      this.#onRequest({
        verb: call.verb,
        resource: call.resource,
        status,
        ms: performance.now() - startedAt,
      });
    }
  }

  async #pastBreaker<T>({ signal, ofNode = false }: ApiCall, send: () => Promise<T>): Promise<T> {
    const trial = await this.#breaker.enter(signal);
    try {
      const answer = await send();
      trial.answered();
      return answer;
    } catch (error) {
      const outage =
        signal?.aborted === true || (ofNode && error instanceof ApiError)
          ? undefined
          : toOutage(error);
      if (outage !== undefined) trial.failed(outage);
      else if (error instanceof ApiError) trial.answered();
      else trial.abandoned();
      throw outage === undefined || this.#breaker.closed ? error : breakerOpenError(outage);
    }
  }

  /** Closes the connections after the running requests have ended. */
  async close(): Promise<void> {
    await this.#dispatcher?.agent.close();
    this.#dispatcher = undefined;
  }

  async #send(
    call: ApiCall,
    signal: AbortSignal,
    limits: Partial<Dispatcher.RequestOptions>,
  ): Promise<Dispatcher.ResponseData> {
    const cluster = this.#config.getCurrentCluster();
    if (!cluster) throw new Error('The kubeconfig names no current cluster');
    const url = new URL(cluster.server.replace(/\/+$/, '') + call.path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const { dispatcher, headers } = await this.#authentication();
    return request(url, {
      method: METHODS[call.verb],
      headers: {
        ...headers,
        accept:
          call.metadataOnly === true
            ? METADATA_ONLY[call.verb === 'list' ? 'list' : 'object']
            : 'application/json',
        ...(call.body
          ? {
              'content-type':
                call.verb === 'patch' ? 'application/merge-patch+json' : 'application/json',
            }
          : {}),
        'user-agent': 'holdfast',
      },
      // undici closes the connection after a DELETE with a body, in case a server does not read it.
      // The API server does, and a new TLS connection costs more than the request.
      ...(call.body ? { body: JSON.stringify(call.body), reset: false } : {}),
      signal,
      dispatcher,
      ...limits,
    });
  }

  /**
   * Returns the current authentication. It is computed for every request, because tokens and
   * certificates are rotated while the process runs, and KubeConfig follows its files.
   */
  async #authentication(): Promise<{ dispatcher: Dispatcher; headers: Record<string, string> }> {
    const tls: https.RequestOptions = {};
    await this.#config.applyToHTTPSOptions(tls);
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(tls.headers ?? {}))
      headers[name.toLowerCase()] = String(value);
    if (tls.auth) headers['authorization'] = `Basic ${Buffer.from(tls.auth).toString('base64')}`;
    const identity = JSON.stringify(
      [
        tls.ca,
        tls.cert,
        tls.key,
        tls.pfx,
        tls.passphrase,
        tls.servername,
        tls.rejectUnauthorized,
      ].map(String),
    );
    if (this.#dispatcher?.identity !== identity) {
      // The certificate was rotated. Running requests may end on the old connections.
      void this.#dispatcher?.agent.close();
      this.#dispatcher = { identity, agent: this.#connect(tls) };
    }
    return { dispatcher: this.#dispatcher.agent, headers };
  }

  #connect(tls: https.RequestOptions): Dispatcher {
    const cluster = this.#config.getCurrentCluster();
    const options = this.#config.createDispatcherOptions(cluster, tls as https.AgentOptions);
    // HTTP/1.1: the loss of a connection affects one request, and the long watch does not share its
    // flow control with other requests.
    const pool = { connections: this.#connections, allowH2: false, keepAliveTimeout: 30_000 };
    switch (options.type) {
      case 'none':
        return new Agent(pool);
      case 'agent':
        return new Agent({
          ...pool,
          connect: connectOptions(options.connect as ConnectionOptions),
        });
      case 'proxy':
        return new ProxyAgent({
          ...pool,
          uri: options.uri,
          requestTls: connectOptions(options.requestTls),
        });
      case 'socks':
        throw new Error(
          `The kubeconfig's proxy-url ${options.uri} is a SOCKS proxy, which is not supported: use an HTTP proxy`,
        );
    }
  }
}

function breakerOpenError(reason: string): ComputeError {
  return new ComputeError('unavailable', `The API server is away: ${reason}`, {
    retryAfterMs: OUTAGE_RETRY_MS,
  });
}

/**
 * Converts the options to the type of undici. The secure context is created once, because parsing
 * the certificates takes half of the CPU time of a connection.
 */
function connectOptions(tls: ConnectionOptions): buildConnector.BuildOptions {
  return {
    timeout: CONNECT_TIMEOUT_MS,
    ...tls,
    secureContext: createSecureContext(tls),
  } as buildConnector.BuildOptions;
}

function parse(text: string): { readonly kind?: unknown } | null {
  try {
    return JSON.parse(text) as { readonly kind?: unknown } | null;
  } catch {
    return null; // not a response of the API server
  }
}

function flattenHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : value,
    ]),
  );
}
