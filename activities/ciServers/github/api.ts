import { Octokit } from '@octokit/core';
import { type Dispatcher, fetch } from 'undici';
import { z } from 'zod';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import {
  CircuitBreaker,
  OUTAGE_RETRY_MS,
  type BreakerPermit,
} from '../../shared/circuitBreaker.ts';
import { CiServerError } from '../../ports/ciServerError.ts';
import type { RequestLogger } from '../../ports/logger.ts';
import type { Clock } from '../clock.ts';
import { createDispatcher } from '../connections.ts';
import { type Credential, pointsPerMinute } from '../credentials.ts';
import type { RequestObserver } from '../requestObserver.ts';
import { SecretSource } from '../secretSource.ts';
import { AppTokens, PatTokens, type TokenSource } from './auth.ts';
import {
  classifyResponse,
  classifyFailure,
  type Classification,
  type RestCall,
  isConnectionReset,
  isOutage,
} from './classify.ts';
import { type GatePass, RateLimitGate } from './rateLimitGate.ts';

/** Version of GitHub's REST API. GitHub supports a version for at least two years. */
const API_VERSION = '2022-11-28';

/**
 * Maximum renewals of the token in one request. An app may need a new token, and a moment until all
 * of GitHub accepts it.
 */
const MAX_RENEWALS = 2;

/** Options of {@link RestApi}. */
export interface RestApiOptions {
  /** Name of the credential. */
  readonly name: string;
  readonly credential: Credential;
  readonly logger: RequestLogger;
  readonly clock: Clock;
  readonly onRequest?: RequestObserver | undefined;
}

/** One request to the GitHub REST API. */
export interface RestRequest {
  readonly call: RestCall;
  /** Method and route template, e.g. `GET /orgs/{org}/actions/runners/{runner_id}`. */
  readonly route: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Subject of the request for error messages, such as `organization acme`. */
  readonly subject: string;
  /**
   * ETag of an earlier response. An unchanged response is 304, which does not count against the
   * primary rate limit.
   */
  readonly etag?: string;
  /**
   * Value of the `authorization` header, for the one endpoint that accepts a registration token.
   * @default the token of the credential
   */
  readonly authorization?: string;
}

/**
 * Response with a 2xx status, 304, or a 404 from GitHub itself. A 404 alone does not prove that the
 * object is gone.
 */
export interface RestResponse {
  readonly status: number;
  readonly data: unknown;
  readonly reason?: string;
  readonly etag?: string;
  /** URL of the next page, if there is one. */
  readonly next?: string;
}

/**
 * Sends requests to one GitHub server with one credential. Each request passes the circuit breaker
 * and the rate limit gate and has a timeout. Requests are logged without secrets, and every failure
 * is classified.
 *
 * Two failures are retried here: a read whose kept-alive connection was closed, and a request
 * rejected with 401 if there is a newer token. All other retries belong to the caller. The plugin
 * `@octokit/plugin-throttling` is not used. It sends one write per second for the whole process,
 * regardless of the credential, and it sleeps inside the call for as long as the server requests.
 */
export class RestApi {
  readonly #options: RestApiOptions;
  readonly #octokit: Octokit;
  readonly #tokens: TokenSource;
  readonly #gate: RateLimitGate;
  readonly #breaker: CircuitBreaker;
  readonly #dispatcher: Dispatcher;

  constructor(options: RestApiOptions) {
    const { name, credential, clock, logger } = options;
    this.#options = options;
    this.#dispatcher = createDispatcher(name, credential);
    this.#gate = new RateLimitGate(
      name,
      { maxInFlight: credential.maxInFlight, pointsPerMinute: pointsPerMinute(credential) },
      clock,
    );
    const host = new URL(credential.apiUrl).host;
    this.#breaker = new CircuitBreaker(
      clock,
      (reason) =>
        new CiServerError('unavailable', `credential "${name}": not sent to ${host}: ${reason}`, {
          retryAfterMs: OUTAGE_RETRY_MS,
        }),
    );
    const log = {
      debug: () => undefined,
      info: () => undefined,
      warn: (text: string) => logger.warn({ credential: name }, text),
      error: (text: string) => logger.error({ credential: name }, text),
    };
    this.#octokit = new Octokit({
      baseUrl: credential.apiUrl,
      userAgent: 'holdfast',
      log,
      request: {
        log,
        fetch: (url: string, init: object) => fetch(url, { ...init, dispatcher: this.#dispatcher }),
      },
    });
    this.#octokit.hook.wrap(
      'request',
      (send, sent) =>
        this.#throughGate(send as unknown as Send, sent as Sent) as Promise<OctokitResponse>,
    );
    const secret = new SecretSource(name, credential);
    this.#tokens =
      credential.type === 'pat'
        ? new PatTokens(secret)
        : new AppTokens(secret, credential, this.#octokit, clock);
  }

  /**
   * Sends a request.
   * @throws CiServerError of every kind, but `name_taken` and `busy` only for calls that have them
   * @throws the abort reason of the signal
   */
  async request(request: RestRequest, signal?: AbortSignal): Promise<RestResponse> {
    const { authorization } = request;
    let token = authorization === undefined ? await this.#token(request, signal) : '';
    for (let renewals = 0; ; renewals++) {
      try {
        return toResponse(
          await this.#octokit.request(request.route, {
            ...request.parameters,
            headers: omitUndefined({
              authorization: authorization ?? `Bearer ${token}`,
              'x-github-api-version': API_VERSION,
              'if-none-match': request.etag,
            }),
            request: omitUndefined({ signal }),
          }),
        );
      } catch (error) {
        signal?.throwIfAborted();
        if (
          authorization === undefined &&
          renewals < MAX_RENEWALS &&
          (error as Failed).response?.status === 401 &&
          (await this.#tokens.renew(token, signal))
        ) {
          token = await this.#token(request, signal);
          continue;
        }
        return this.#onErrorResponse(request, error);
      }
    }
  }

  /**
   * Sends a request as the GitHub App itself, for all its installations.
   * @throws CiServerError `credentials` if the credential is not an App; otherwise as
   * {@link request}
   */
  async requestAsApp(request: RestRequest, signal?: AbortSignal): Promise<RestResponse> {
    if (!(this.#tokens instanceof AppTokens))
      throw this.toError('credentials', request, 'only a GitHub App may ask this');
    try {
      const parameters = {
        ...request.parameters,
        headers: { 'x-github-api-version': API_VERSION },
        request: omitUndefined({ signal }),
      };
      return toResponse(await this.#tokens.requestAsApp(request.route, parameters));
    } catch (error) {
      signal?.throwIfAborted();
      return this.#onErrorResponse(request, error);
    }
  }

  #onErrorResponse(request: RestRequest, error: unknown): RestResponse {
    if ((error as Failed).response?.status === 304) return { status: 304, data: undefined };
    const { failure, status } = this.#classify(request.call, error);
    if (failure.kind === 'not_found')
      return { status: 404, data: undefined, reason: failure.reason };
    throw this.#error(failure, request, status, error);
  }

  /**
   * Returns the parsed fields of a response.
   * @throws CiServerError `credentials` for a 404 that can only concern the scope; `unavailable` if
   * the response is not from GitHub
   */
  parse<T extends z.ZodType>(schema: T, answer: RestResponse, request: RestRequest): z.output<T> {
    if (answer.status === 404) {
      const enterprise = request.route.includes('{enterprise}')
        ? '; fine-grained tokens and GitHub Apps have no access to enterprises'
        : '';
      throw this.toError(
        'credentials',
        request,
        `${answer.reason ?? 'Not Found'}: it does not exist, or the credential cannot see it${enterprise}`,
        404,
      );
    }
    const result = schema.safeParse(answer.data);
    if (result.success) return result.data;
    const problem = result.error.issues[0];
    throw this.toError(
      'unavailable',
      request,
      `not an answer of the CI server's API (${problem?.path.join('.') ?? ''} ${problem?.message ?? ''}); something in between?`,
      answer.status,
    );
  }

  /** Returns an error about a request in the format of all other errors. */
  toError(
    kind: CiServerError['kind'],
    request: RestRequest,
    reason: string,
    status?: number,
  ): CiServerError {
    return this.#error({ kind, reason }, request, status);
  }

  /** Returns whether the server answers, as far as this process knows. */
  isReachable(): boolean {
    return this.#breaker.closed;
  }

  /**
   * Closes the connections, including those with an unread response: fetch does not read the body
   * of a 407, and a graceful close would wait for it forever.
   */
  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }

  async #token(request: RestRequest, signal: AbortSignal | undefined): Promise<string> {
    try {
      return await this.#tokens.token(signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof CiServerError) throw error;
      const exchange: RestRequest = {
        ...request,
        call: 'installation_token',
        route: 'POST /app/installations/{installation_id}/access_tokens',
      };
      if (error instanceof z.ZodError)
        throw this.#error(
          { kind: 'unavailable', reason: 'not an answer of the API' },
          exchange,
          undefined,
        );
      if (!isHttpError(error))
        throw this.#error(
          { kind: 'credentials', reason: `no installation token: ${String(error)}` },
          exchange,
          undefined,
        );
      const { failure, status } = this.#classify('installation_token', error);
      throw this.#error(
        failure.kind === 'not_found' ? { ...failure, kind: 'credentials' } : failure,
        exchange,
        status,
        error,
      );
    }
  }

  #classify(
    call: RestCall,
    error: unknown,
  ): { failure: Classification; status: number | undefined } {
    if (error instanceof CiServerError) {
      const { kind, message, retryAfterMs, status } = error;
      return { failure: { kind, reason: message, retryAfterMs }, status };
    }
    const { response } = error as Failed;
    if (response === undefined) return { failure: classifyFailure(error), status: undefined };
    return {
      failure: classifyResponse(
        { call, status: response.status, headers: response.headers, body: response.data },
        this.#options.clock.now(),
      ),
      status: response.status,
    };
  }

  #error(
    failure: Classification,
    request: RestRequest,
    status: number | undefined,
    cause?: unknown,
  ): CiServerError {
    if (cause instanceof CiServerError) return cause;
    const { name, credential } = this.#options;
    const kind = failure.kind === 'not_found' ? 'credentials' : failure.kind;
    const advice =
      kind === 'credentials'
        ? `; check what credential "${name}" may do there (self-hosted runners: read and write)`
        : '';
    const what = status === undefined ? 'no answer from' : `${status} from`;
    const message = `${what} ${new URL(credential.apiUrl).host} to ${request.route} (${request.subject}): ${failure.reason}${advice}`;
    const retryAfterMs = kind === 'unavailable' ? this.#outageRetryMs() : failure.retryAfterMs;
    return new CiServerError(kind, message, { status, retryAfterMs });
  }

  /**
   * Returns the wait before the next call of an unavailable server. The wait that the server requests
   * (an hour, from a maintenance page) is not used, because the breaker probes the server itself.
   */
  #outageRetryMs(): number | undefined {
    return this.isReachable() ? undefined : OUTAGE_RETRY_MS;
  }

  /** Wraps every single request, including those for installation tokens. */
  async #throughGate(send: Send, options: Sent): Promise<RawResponse> {
    const { credential, clock } = this.#options;
    const read = options.method === 'GET';
    const signal = options.request.signal;
    for (let again = false; ; again = true) {
      const trial = await this.#breaker.enter(signal);
      const pass = await this.#gate
        .enter(`${options.method} ${options.url}`, read ? 1 : 5, signal)
        .catch((error: unknown) => {
          trial.abandoned();
          throw error;
        });
      const timeout = AbortSignal.timeout(credential.requestTimeoutSeconds * 1000);
      const sentAt = clock.now();
      try {
        const answer = await send({
          ...options,
          request: {
            ...options.request,
            signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
          },
        });
        pass.completed();
        this.#reportToBreaker(trial, signal, answer);
        this.#observe(options, answer.status, answer.headers, sentAt);
        return answer;
      } catch (error) {
        const { response } = error as Failed;
        this.#observe(options, response?.status, response?.headers, sentAt);
        this.#reportToBreaker(trial, signal, response, error);
        this.#reportToGate(pass, options, error);
        if (
          read &&
          !again &&
          response === undefined &&
          signal?.aborted !== true &&
          isConnectionReset(error)
        )
          continue;
        throw error;
      }
    }
  }

  /**
   * Reports the result to the breaker. A response that is typical for an outage counts as a
   * failure.
   */
  #reportToBreaker(
    trial: BreakerPermit,
    signal: AbortSignal | undefined,
    answer: RawResponse | undefined,
    error?: unknown,
  ): void {
    if (answer === undefined && signal?.aborted === true) return trial.abandoned();
    if (answer === undefined) return trial.failed(classifyFailure(error).reason);
    const { status, headers, data } = answer;
    if (isOutage({ call: 'list', status, headers, body: data })) trial.failed(`status ${status}`);
    else trial.answered();
  }

  /**
   * Reports the result to the gate.
   * @throws CiServerError `rate_limited` with the wait that applies to all requests
   */
  #reportToGate(pass: GatePass, options: Sent, error: unknown): void {
    const { response } = error as Failed;
    if (response === undefined) return pass.failed();
    const { failure } = this.#classify('list', error); // limits look the same for every call
    if (failure.kind !== 'rate_limited') return pass.completed();
    const request: RestRequest = {
      call: 'list',
      route: `${options.method} ${options.url}`,
      parameters: {},
      subject: `credential ${this.#options.name}`,
    };
    throw this.#error(
      { ...failure, retryAfterMs: pass.rateLimited(failure.retryAfterMs) },
      request,
      response.status,
    );
  }

  #observe(
    options: Sent,
    status: number | undefined,
    headers: RawResponse['headers'] | undefined,
    sentAt: number,
  ): void {
    const { name, logger, clock, onRequest } = this.#options;
    const remaining = headers?.['x-ratelimit-remaining'];
    const rateLimitRemaining = remaining === undefined ? undefined : Number(remaining);
    const seen = {
      credential: name,
      route: `${options.method} ${options.url}`,
      status,
      ms: clock.now() - sentAt,
      rateLimitRemaining,
    };
    logger.debug(seen, 'CI server request');
    onRequest?.(seen);
  }
}

function toResponse({ status, data, headers }: RawResponse): RestResponse {
  const next = /<([^>]+)>;\s*rel="next"/.exec(String(headers['link'] ?? ''))?.[1];
  return { status, data, ...omitUndefined({ etag: headers['etag']?.toString(), next }) };
}

interface RawResponse {
  status: number;
  headers: Record<string, string | number | undefined>;
  data: unknown;
}

interface Sent {
  method: string;
  url: string;
  request: { signal?: AbortSignal };
}

type Send = (options: Sent) => Promise<RawResponse>;
type OctokitResponse = Awaited<ReturnType<Octokit['request']>>;

/** Error of octokit. It has a response if there was one. */
type Failed = { status?: number; response?: RawResponse };

const isHttpError = (error: unknown): boolean => (error as Error | undefined)?.name === 'HttpError';
