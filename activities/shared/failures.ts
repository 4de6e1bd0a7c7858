/**
 * Maps the errors of the ports to Temporal failures: which are retried, after which delay, and
 * which are logged as benign.
 */
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { CiServerError, type CiServerErrorKind } from '../ports/ciServerError.ts';
import { ComputeError, type ComputeErrorKind } from '../ports/computeError.ts';
import { UnknownCredentialError } from '../ports/ciServer.ts';
import { FAILURE_TYPES } from '../../core/activities/index.ts';

/** Retry delays that replace the backoff of the retry policy (ms). */
export interface RetryDelays {
  readonly credentialsRetryMs: number;
  readonly busyRetryMs?: number;
  /**
   * Maximum to which the delay for a busy runner doubles.
   * @default busyRetryMs, so that it does not grow
   */
  readonly maxBusyRetryMs?: number;
}

/**
 * Delays for an unavailable server and for errors without a delay of their own: 1 s, doubling up to
 * a minute.
 */
const FIRST_UNAVAILABLE_RETRY_MS = 1_000;
const MAX_UNAVAILABLE_RETRY_MS = 60_000;
/** Delay after a pod was rejected by a ResourceQuota (ms). */
const QUOTA_RETRY_MS = 30_000;
/** Delay for requests that a rule of the cluster rejects. */
const DENIED_RETRY_MS = 60_000;

/** Errors that are expected during normal operation. */
const EXPECTED: readonly CiServerErrorKind[] = ['busy', 'rate_limited'];

/** Errors that the same request gets again. A name that is taken stays taken. */
const FINAL: readonly CiServerErrorKind[] = ['rejected', 'name_taken'];

/**
 * Failure types and delays of compute errors. Errors without `retryMs` are often transient, and
 * their delay doubles: see {@link unavailableRetryMs}.
 */
const COMPUTE_FAILURE: Readonly<Record<ComputeErrorKind, { type: string; retryMs?: number }>> = {
  quota_exceeded: { type: FAILURE_TYPES.quota_exceeded, retryMs: QUOTA_RETRY_MS },
  invalid: { type: FAILURE_TYPES.computeRejected, retryMs: DENIED_RETRY_MS },
  // Someone may have changed its labels and may restore them.
  foreign: { type: FAILURE_TYPES.foreignObject, retryMs: DENIED_RETRY_MS },
  // An API server that has just started does not know any Role yet and forbids everything
  // (https://github.com/kubernetes/kubernetes/issues/121635).
  forbidden: { type: FAILURE_TYPES.computeForbidden },
  unavailable: { type: FAILURE_TYPES.computeUnavailable },
};

/**
 * Maps an error of a port to a Temporal failure. The failure has the retry delay that the server
 * requested, and category BENIGN if it is expected (busy, rate limited). Unknown errors are
 * returned unchanged.
 * @param options.rejectionIsFinal - whether a rejection is non-retryable. True for operations that can be
 * skipped, such as creating a runner. False for operations that must be done: there, a rejection
 * (an unknown 422 for a removal, an admission webhook for a deletion) is a wait with a reason
 * @param options.times - number of rejections for this reason, including this one. Each reason has a
 * backoff of its own
 */
export function toFailure(
  error: unknown,
  pace: RetryDelays,
  { rejectionIsFinal, times = 1 }: { readonly rejectionIsFinal: boolean; readonly times?: number },
): unknown {
  if (error instanceof CiServerError) return ciFailure(error, pace, { rejectionIsFinal, times });
  if (error instanceof ComputeError) {
    if (error.kind === 'invalid' && rejectionIsFinal)
      return applicationFailure(error.message, FAILURE_TYPES.podInvalid, { final: true });
    const { type, retryMs } = COMPUTE_FAILURE[error.kind];
    return applicationFailure(error.message, type, {
      nextRetryDelayMs: error.retryAfterMs ?? retryMs ?? unavailableRetryMs(times),
    });
  }
  if (error instanceof UnknownCredentialError) {
    // Retried: the credential may be added to the configuration and the worker restarted while the
    // runner waits.
    return applicationFailure(error.message, FAILURE_TYPES.unknownCredential, {
      nextRetryDelayMs: pace.credentialsRetryMs,
    });
  }
  return error;
}

function ciFailure(
  error: CiServerError,
  pace: RetryDelays,
  { rejectionIsFinal, times }: { readonly rejectionIsFinal: boolean; readonly times: number },
): ApplicationFailure {
  const { busyRetryMs, maxBusyRetryMs = busyRetryMs } = pace;
  const delays: Partial<Record<CiServerErrorKind, number | undefined>> = {
    busy:
      busyRetryMs === undefined
        ? undefined
        : jitter(exponentialBackoff(busyRetryMs, times, maxBusyRetryMs)),
    rate_limited: error.retryAfterMs,
    credentials: pace.credentialsRetryMs,
    unavailable: error.retryAfterMs ?? unavailableRetryMs(times),
  };
  const final = FINAL.includes(error.kind) && rejectionIsFinal;
  return applicationFailure(error.message, FAILURE_TYPES[error.kind], {
    nextRetryDelayMs: delays[error.kind] ?? (final ? undefined : unavailableRetryMs(times)),
    expected: EXPECTED.includes(error.kind),
    final,
  });
}

function unavailableRetryMs(times: number): number {
  return exponentialBackoff(FIRST_UNAVAILABLE_RETRY_MS, times, MAX_UNAVAILABLE_RETRY_MS);
}

/**
 * Returns the delay after the given number of failures (ms). It doubles from `firstMs` up to
 * `longestMs`.
 */
export function exponentialBackoff(firstMs: number, times: number, longestMs = firstMs): number {
  return Math.min(firstMs * 2 ** Math.max(0, times - 1), Math.max(firstMs, longestMs));
}

/** Adds jitter of ±10 %, so that runners that became busy together do not retry together. */
function jitter(ms: number): number {
  return Math.round(ms * (0.9 + Math.random() * 0.2));
}

/** Creates an application failure. It is retryable unless `final` is set. */
export function applicationFailure(
  message: string,
  type: string,
  options: {
    nextRetryDelayMs?: number | undefined;
    expected?: boolean;
    final?: boolean;
    details?: unknown[];
  } = {},
): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type,
    nonRetryable: options.final === true,
    ...omitUndefined({
      nextRetryDelay: options.nextRetryDelayMs,
      details: options.details,
      category: options.expected === true ? ApplicationFailureCategory.BENIGN : undefined,
    }),
  });
}
