/** One request to a CI server, as metrics see it. */
export interface CiRequestMetrics {
  /** Name of the credential in the worker's config. */
  readonly credential: string;
  /** Method and route template: few distinct values. */
  readonly route: string;
  /** `undefined`: there was no answer. */
  readonly status: number | undefined;
  /** From sending to the end of the answer, without the wait for a turn. */
  readonly ms: number;
  /** Requests left in the primary limit's window, where the server tells. */
  readonly rateLimitRemaining: number | undefined;
}

/** Called after every request. Must not throw. */
export type RequestObserver = (request: CiRequestMetrics) => void;
