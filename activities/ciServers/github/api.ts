import { z } from 'zod';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { CiServerError } from '../../ports/ciServerError.ts';
import { SecretSource } from '../secretSource.ts';
import { AppTokens, PatTokens, type TokenSource } from './auth.ts';
import type { RestApiOptions, RestRequest, RestResponse } from './restRequest.ts';
import { RestTransport } from './restTransport.ts';
import type { RestErrors, RawResponse, Failed } from './restErrors.ts';

/** Version of GitHub's REST API. GitHub supports a version for at least two years. */
const API_VERSION = '2022-11-28';

/**
 * Maximum renewals of the token in one request. An app may need a new token, and a moment until all
 * of GitHub accepts it.
 */
const MAX_RENEWALS = 2;

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
  readonly #transport: RestTransport;
  readonly #errors: RestErrors;
  readonly #tokens: TokenSource;

  constructor(options: RestApiOptions) {
    const { name, credential, clock } = options;
    this.#transport = new RestTransport(options);
    this.#errors = this.#transport.errors;
    const secret = new SecretSource(name, credential);
    this.#tokens =
      credential.type === 'pat'
        ? new PatTokens(secret)
        : new AppTokens(secret, credential, this.#transport.octokit, clock);
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
          await this.#transport.octokit.request(request.route, {
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
    const { failure, status } = this.#errors.classify(request.call, error);
    if (failure.kind === 'not_found')
      return { status: 404, data: undefined, reason: failure.reason };
    throw this.#errors.of(failure, request, status, error);
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
    return this.#errors.of({ kind, reason }, request, status);
  }

  /** Returns whether the server answers, as far as this process knows. */
  isReachable(): boolean {
    return this.#transport.isReachable();
  }

  /** Closes the connections. */
  close(): Promise<void> {
    return this.#transport.close();
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
        throw this.#errors.of(
          { kind: 'unavailable', reason: 'not an answer of the API' },
          exchange,
          undefined,
        );
      if (!isHttpError(error))
        throw this.#errors.of(
          { kind: 'credentials', reason: `no installation token: ${String(error)}` },
          exchange,
          undefined,
        );
      const { failure, status } = this.#errors.classify('installation_token', error);
      throw this.#errors.of(
        failure.kind === 'not_found' ? { ...failure, kind: 'credentials' } : failure,
        exchange,
        status,
        error,
      );
    }
  }
}

function toResponse({ status, data, headers }: RawResponse): RestResponse {
  const next = /<([^>]+)>;\s*rel="next"/.exec(String(headers['link'] ?? ''))?.[1];
  return { status, data, ...omitUndefined({ etag: headers['etag']?.toString(), next }) };
}

const isHttpError = (error: unknown): boolean => (error as Error | undefined)?.name === 'HttpError';
