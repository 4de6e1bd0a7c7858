/**
 * Reason why a request to the compute failed. It decides whether and when the request is retried.
 */
export type ComputeErrorKind =
  /** 403 "exceeded quota". */
  | 'quota_exceeded'
  /**
   * The pod specification is rejected (400, 422 or an admission webhook). A retry does not help.
   */
  | 'invalid'
  /**
   * The object belongs to another installation or runner, by its own labels and annotations. It is
   * not touched.
   */
  | 'foreign'
  /** 401 or 403: a permission is missing. */
  | 'forbidden'
  /** 429, 5xx, network failure. */
  | 'unavailable';

/**
 * Failure of a request to the compute. Adapters map every failure of theirs to one of the kinds.
 */
export class ComputeError extends Error {
  override readonly name = 'ComputeError';
  readonly kind: ComputeErrorKind;
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: ComputeErrorKind,
    message: string,
    more: { retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.retryAfterMs = more.retryAfterMs;
  }
}
