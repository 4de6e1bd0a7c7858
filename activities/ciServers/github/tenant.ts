import { type Dispatcher, fetch } from 'undici';
import type { z } from 'zod';
import type { Scope } from '../../../core/domain/ciServer.ts';
import { parseJson } from '../../../core/domain/parseJson.ts';
import { CiServerError, type CiServerErrorKind } from '../../ports/ciServerError.ts';
import { createDispatcher } from '../connections.ts';
import { registrationUrl } from './addresses.ts';
import type { RestApi } from './api.ts';
import type { RestApiOptions, RestRequest } from './restRequest.ts';
import { classifyFailure, type Classification } from './classify.ts';
import { ExpiringCache, type Expiring } from './expiringCache.ts';
import { classifyTenantResponse, connectionAnswer, tokenClaims } from './tenantResponses.ts';

/** Version of the Actions service's API. */
const API_VERSION = '6.0-preview';
/** Minimum remaining validity of a token of the Actions service (ms), as in GitHub's client. */
const MIN_TOKEN_VALIDITY_MS = 60_000;
/** Assumed validity of a token without a readable expiry (ms). At GitHub it is an hour. */
const DEFAULT_TOKEN_VALIDITY_MS = 10 * 60_000;
/** Time to wait after a rate limit response that does not name a time (ms). */
const DEFAULT_LIMIT_WAIT_MS = 60_000;
/** Time after which a registration token is known to all of GitHub's servers (ms). */
const TOKEN_PROPAGATION_MS = 1_000;

/** One request to the Actions service. */
export interface TenantRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Path below the URL of the service, with its parameters. */
  readonly path: string;
  /** Path without IDs, for metrics and logs. */
  readonly route: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Subject of the request for error messages. */
  readonly subject: string;
  /**
   * Token of a session's queue.
   * @default the token of the service
   */
  readonly token?: string;
}

/** A request to an address that the service has named, such as that of a queue. */
export interface QueueRequest extends Omit<TenantRequest, 'path' | 'query'> {
  readonly url: URL;
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Maximum duration (ms). @default that of the credential's requests */
  readonly timeoutMs?: number;
}

/** A response with a 2xx status, or a 404 that means that one object does not exist. */
export interface TenantResponse {
  readonly status: number;
  readonly data: unknown;
}

interface Connection {
  readonly url: string;
  readonly token: string;
}

/**
 * Sends requests to the Actions service of GitHub with one credential. For each scope, a
 * registration token is exchanged for the address and the token of the service, which stay in
 * memory.
 * https://github.com/actions/scaleset/blob/v0.4.0/client.go
 */
export class Tenant {
  readonly #options: RestApiOptions;
  readonly #api: RestApi;
  readonly #webUrl: string;
  readonly #registrationToken: (scope: Scope) => ExpiringCache<string>;
  readonly #dispatcher: Dispatcher;
  readonly #connections = new Map<string, ExpiringCache<Connection>>();

  constructor(
    options: RestApiOptions,
    api: RestApi,
    webUrl: string,
    registrationToken: (scope: Scope) => ExpiringCache<string>,
  ) {
    this.#options = options;
    this.#api = api;
    this.#webUrl = webUrl;
    this.#registrationToken = registrationToken;
    this.#dispatcher = createDispatcher(options.name, options.credential);
  }

  /**
   * Sends a request. If the token of the service is rejected, it is renewed once.
   * @throws CiServerError for all errors except a 404, which is returned
   */
  async request(
    scope: Scope,
    request: TenantRequest,
    signal?: AbortSignal,
  ): Promise<TenantResponse> {
    const cache = this.#connection(scope);
    for (let renewed = false; ; renewed = true) {
      const connection = await cache.get(signal);
      const url = new URL(`${connection.url.replace(/\/+$/, '')}/${request.path}`);
      for (const [name, value] of Object.entries(request.query ?? {}))
        url.searchParams.set(name, value);
      url.searchParams.set('api-version', API_VERSION);
      try {
        const { token = connection.token } = request;
        return await this.send({ ...request, url, token }, signal);
      } catch (error) {
        const isRejected =
          error instanceof CiServerError && error.status === 401 && request.token === undefined;
        if (!isRejected || renewed) throw error;
        cache.forget(connection);
      }
    }
  }

  /**
   * Sends one request, without any retry.
   * @throws CiServerError for all errors except a 404, which is returned
   * @throws the abort reason of the signal
   */
  async send(request: QueueRequest, signal?: AbortSignal): Promise<TenantResponse> {
    const { credential, clock } = this.#options;
    const sentAt = clock.elapsed();
    const timeout = AbortSignal.timeout(
      request.timeoutMs ?? credential.requestTimeoutSeconds * 1000,
    );
    let answer: Awaited<ReturnType<typeof fetch>> | undefined;
    let text: string;
    try {
      answer = await fetch(request.url, {
        method: request.method,
        dispatcher: this.#dispatcher,
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        headers: {
          'user-agent': 'holdfast',
          'content-type': 'application/json',
          authorization: `Bearer ${request.token}`,
          ...request.headers,
        },
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      });
      text = await answer.text();
    } catch (error) {
      signal?.throwIfAborted();
      throw this.#error(classifyFailure(error), request, undefined);
    } finally {
      this.#observe(request, answer?.status, sentAt);
    }
    // TextDecoder, which reads the body, drops a byte order mark.
    const data = parseJson(text);
    if (answer.ok) return { status: answer.status, data };
    const failure = classifyTenantResponse(
      { status: answer.status, headers: Object.fromEntries(answer.headers), body: data ?? text },
      clock.now(),
    );
    if (failure.kind === 'not_found') return { status: 404, data };
    const ids = ['activityid', 'x-github-request-id'].flatMap((name) => {
      const value = answer.headers.get(name);
      return value === null ? [] : [`${name} ${value}`];
    });
    const reason = [failure.reason, ...ids].join(', ');
    throw this.#error({ ...failure, reason }, request, answer.status);
  }

  /**
   * Returns the parsed fields of a response.
   * @throws CiServerError `unavailable` if the response is not one of the service, for example a
   * 404 for the requested object
   */
  parse<T extends z.ZodType>(
    schema: T,
    answer: TenantResponse,
    request: Pick<TenantRequest, 'method' | 'route' | 'subject'>,
  ): z.output<T> {
    const problem = (text: string): CiServerError =>
      this.toError(
        'unavailable',
        request,
        `not a response of the Actions service (${text})`,
        answer.status,
      );
    try {
      const { data, error } = schema.safeParse(answer.data);
      if (error === undefined) return data as z.output<T>;
      const [issue] = error.issues;
      throw problem(`${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
    } catch (error) {
      // A transformation throws for a text that is not JSON, or an entry without its fields.
      throw error instanceof CiServerError ? error : problem(String(error).slice(0, 200));
    }
  }

  /** Returns an error about a request in the format of all other errors. */
  toError(
    kind: CiServerErrorKind,
    request: Pick<TenantRequest, 'method' | 'route' | 'subject'>,
    reason: string,
    status?: number,
  ): CiServerError {
    return this.#error({ kind, reason }, request, status);
  }

  /** Closes the connections. */
  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }

  #connection(scope: Scope): ExpiringCache<Connection> {
    const key = `${scope.kind}:${scope.name.toLowerCase()}`;
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    const connection = new ExpiringCache(
      async () => await this.#connect(scope),
      MIN_TOKEN_VALIDITY_MS,
      this.#options.clock,
    );
    this.#connections.set(key, connection);
    return connection;
  }

  /**
   * Exchanges a registration token for the address and the token of the service. A new registration
   * token may be unknown for a moment, and a cached one may have been revoked.
   */
  async #connect(scope: Scope): Promise<Expiring<Connection>> {
    const cache = this.#registrationToken(scope);
    for (let again = false; ; again = true) {
      const token = await cache.get();
      const request: RestRequest = {
        call: 'scale_sets',
        route: 'POST /actions/runner-registration',
        // Pass the body as `data`: a parameter `url` would replace the address of the request.
        parameters: {
          data: { url: registrationUrl(this.#webUrl, scope), runner_event: 'register' },
        },
        subject: `${scope.kind} ${scope.name}`,
        authorization: `RemoteAuth ${token}`,
      };
      try {
        const answer = await this.#api.request(request);
        const connection = this.#api.parse(connectionAnswer, answer, request);
        return { value: connection, expiresAtMs: this.#expiryOf(connection.token) };
      } catch (error) {
        if (again || !(error instanceof CiServerError && error.kind === 'credentials')) throw error;
        cache.forget(token);
        await this.#options.clock.sleep(TOKEN_PROPAGATION_MS);
      }
    }
  }

  #expiryOf(token: string): number {
    const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
    const { data } = tokenClaims.safeParse(parseJson(claims));
    return data === undefined
      ? this.#options.clock.now() + DEFAULT_TOKEN_VALIDITY_MS
      : data.exp * 1000;
  }

  #error(
    { kind, reason, retryAfterMs }: Classification,
    { method, route, subject }: Pick<TenantRequest, 'method' | 'route' | 'subject'>,
    status: number | undefined,
  ): CiServerError {
    const what = status === undefined ? 'no answer from' : `${status} from`;
    return new CiServerError(
      kind === 'not_found' ? 'rejected' : kind,
      `${what} GitHub's Actions service to ${method} ${route} (${subject}): ${reason}`,
      {
        status,
        retryAfterMs:
          kind === 'rate_limited' ? (retryAfterMs ?? DEFAULT_LIMIT_WAIT_MS) : retryAfterMs,
      },
    );
  }

  #observe(request: QueueRequest, status: number | undefined, sentAt: number): void {
    const { name, logger, clock, onRequest } = this.#options;
    const seen = {
      credential: name,
      route: `${request.method} ${request.route}`,
      status,
      ms: clock.elapsed() - sentAt,
      rateLimitRemaining: undefined,
    };
    logger.debug(seen, 'CI server request');
    onRequest?.(seen);
  }
}
