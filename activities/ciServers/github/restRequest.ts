/** Requests to GitHub's REST API, and their responses. */
import type { RequestLogger } from '../../ports/logger.ts';
import type { Clock } from '../clock.ts';
import type { Credential } from '../credentials.ts';
import type { RequestObserver } from '../requestObserver.ts';
import type { RestCall } from './classify.ts';

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
