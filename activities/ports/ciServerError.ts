/**
 * Reason why a request to a CI server failed. It decides whether and when the request is retried.
 */
export type CiServerErrorKind =
  /** The runner is running a job, or jobs of the workflow run to run again have not ended. */
  | 'busy'
  /** Primary or secondary limit, 403 or 429. `retryAfterMs` is always set. */
  | 'rate_limited'
  /** 401 or 403, or 404 for a scope that should be visible. It says nothing about the runner. */
  | 'credentials'
  /** 409 on registration: the name is in use. */
  | 'name_taken'
  /**
   * Any other 4xx. The request itself is wrong, for example an unknown group or an invalid label. A
   * retry does not help.
   */
  | 'rejected'
  /** 409 for the session of a scale set: another process has it. */
  | 'conflict'
  /** The server has ended the session of a scale set, or has removed the scale set. */
  | 'session_lost'
  /** 5xx, network failure, timeout. */
  | 'unavailable';

/**
 * Failure of a request to a CI server. Adapters map every failure of theirs to one of the kinds.
 */
export class CiServerError extends Error {
  override readonly name = 'CiServerError';
  readonly kind: CiServerErrorKind;
  /** HTTP status, if there was a response. */
  readonly status: number | undefined;
  /**
   * Time to wait before the next request (ms). For `unavailable` it is set only if the server
   * answers no request of this process.
   */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: CiServerErrorKind,
    message: string,
    more: { status?: number | undefined; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.status = more.status;
    this.retryAfterMs = more.retryAfterMs;
  }
}
