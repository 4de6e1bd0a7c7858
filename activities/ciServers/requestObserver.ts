/** One request to a CI server, for metrics. */
export interface CiRequestMetrics {
  /** Name of the credential in the worker's config. */
  readonly credential: string;
  /** Method and route template. There are only a few distinct values. */
  readonly route: string;
  /** HTTP status, or `undefined` if there was no response. */
  readonly status: number | undefined;
  /** Time from sending to the end of the response (ms), without the wait in the rate limit gate. */
  readonly ms: number;
  /** Requests left in the window of the primary rate limit, if the server reports them. */
  readonly rateLimitRemaining: number | undefined;
}

/** Called after every request. Must not throw. */
export type RequestObserver = (request: CiRequestMetrics) => void;
