import { OUTAGE_RETRY_MS } from '../../shared/circuitBreaker.ts';
import { CiServerError } from '../../ports/ciServerError.ts';
import {
  type Classification,
  classifyFailure,
  classifyResponse,
  type RestCall,
} from './classify.ts';
import type { RestApiOptions, RestRequest } from './restRequest.ts';

/** Response as octokit returns it. */
export interface RawResponse {
  status: number;
  headers: Record<string, string | number | undefined>;
  data: unknown;
}

/** Error of octokit. It has a response if there was one. */
export type Failed = { status?: number; response?: RawResponse };

/** Errors about requests to GitHub: their kinds and texts. */
export class RestErrors {
  readonly #options: RestApiOptions;
  readonly #isReachable: () => boolean;

  /** @param isReachable - whether the server answers, as far as this process knows */
  constructor(options: RestApiOptions, isReachable: () => boolean) {
    this.#options = options;
    this.#isReachable = isReachable;
  }

  /** Classifies a failure of octokit. */
  classify(
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

  /** Returns an error about a request. */
  of(
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
    return this.#isReachable() ? undefined : OUTAGE_RETRY_MS;
  }
}
