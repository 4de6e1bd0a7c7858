import { Octokit } from '@octokit/core';
import { type Dispatcher, fetch } from 'undici';
import {
  type BreakerPermit,
  CircuitBreaker,
  OUTAGE_RETRY_MS,
} from '../../shared/circuitBreaker.ts';
import { CiServerError } from '../../ports/ciServerError.ts';
import { createDispatcher } from '../connections.ts';
import { pointsPerMinute } from '../credentials.ts';
import { classifyFailure, isConnectionReset, isOutage } from './classify.ts';
import { type GatePass, RateLimitGate } from './rateLimitGate.ts';
import { type Failed, type RawResponse, RestErrors } from './restErrors.ts';
import type { RestApiOptions, RestRequest } from './restRequest.ts';

interface Sent {
  method: string;
  url: string;
  request: { signal?: AbortSignal };
}

type Send = (options: Sent) => Promise<RawResponse>;
type OctokitResponse = Awaited<ReturnType<Octokit['request']>>;

/**
 * Connection to one GitHub server with one credential. Each request, including those for
 * installation tokens, passes the circuit breaker and the rate limit gate and has a timeout. A read
 * whose kept-alive connection was closed is sent again.
 */
export class RestTransport {
  readonly octokit: Octokit;
  readonly errors: RestErrors;
  readonly #options: RestApiOptions;
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
    this.octokit = new Octokit({
      baseUrl: credential.apiUrl,
      userAgent: 'holdfast',
      log,
      request: {
        log,
        fetch: (url: string, init: object) => fetch(url, { ...init, dispatcher: this.#dispatcher }),
      },
    });
    this.octokit.hook.wrap(
      'request',
      (send, sent) =>
        this.#throughGate(send as unknown as Send, sent as Sent) as Promise<OctokitResponse>,
    );
    this.errors = new RestErrors(options, () => this.isReachable());
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
    const { failure } = this.errors.classify('list', error); // limits look the same for every call
    if (failure.kind !== 'rate_limited') return pass.completed();
    const request: RestRequest = {
      call: 'list',
      route: `${options.method} ${options.url}`,
      parameters: {},
      subject: `credential ${this.#options.name}`,
    };
    throw this.errors.of(
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
