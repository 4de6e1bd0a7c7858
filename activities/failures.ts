/** How the errors of the ports become Temporal failures: which are retried, when, and how loudly. */
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { defined } from '../core/defined.ts';
import { CiServerError, ComputeError, UnknownCredentialError, type CiServerErrorKind, type ComputeErrorKind } from './ports.ts';
import { FAILURE_TYPES } from '../core/calls/index.ts';

/** Delays of retries that are not the retry policy's own backoff, in ms. */
export interface RetryPace {
  readonly credentialsRetryMs: number;
  readonly busyRetryMs?: number;
}

const QUOTA_RETRY_MS = 30_000;
const FORBIDDEN_RETRY_MS = 60_000;

/** Answers that are part of the plan. */
const EXPECTED: readonly CiServerErrorKind[] = ['busy', 'rate_limited'];

const COMPUTE_FAILURE: Readonly<Record<ComputeErrorKind, { type: string; retryMs?: number; final?: true }>> = {
  quota_exceeded: { type: FAILURE_TYPES.quota_exceeded, retryMs: QUOTA_RETRY_MS },
  invalid: { type: FAILURE_TYPES.invalid, final: true },
  forbidden: { type: FAILURE_TYPES.forbidden, retryMs: FORBIDDEN_RETRY_MS },
  unavailable: { type: FAILURE_TYPES.computeUnavailable },
};

/**
 * A port's error as the failure that makes Temporal do the right thing: the retry's delay where the world named one,
 * BENIGN where the failure is part of the plan (busy, rate limited). Anything unknown is passed on as it is.
 * @param rejectedIsFinal - false where a refused request says nothing final (an unknown 422 to a removal)
 */
export function toFailure(error: unknown, pace: RetryPace, rejectedIsFinal: boolean): unknown {
  if (error instanceof CiServerError) return ciFailure(error, pace, rejectedIsFinal);
  if (error instanceof ComputeError) {
    const { type, retryMs, final } = COMPUTE_FAILURE[error.kind];
    return failure(error.message, type, { nextRetryDelayMs: error.retryAfterMs ?? retryMs, final: final === true });
  }
  if (error instanceof UnknownCredentialError) {
    // Retried: the credential may be added to the config and the worker restarted while the runner waits.
    return failure(error.message, FAILURE_TYPES.unknownCredential, { nextRetryDelayMs: pace.credentialsRetryMs });
  }
  return error;
}

function ciFailure(error: CiServerError, pace: RetryPace, rejectedIsFinal: boolean): ApplicationFailure {
  const delays: Partial<Record<CiServerErrorKind, number | undefined>> = {
    busy: pace.busyRetryMs === undefined ? undefined : jitter(pace.busyRetryMs),
    rate_limited: error.retryAfterMs,
    credentials: pace.credentialsRetryMs,
  };
  return failure(error.message, FAILURE_TYPES[error.kind], {
    nextRetryDelayMs: delays[error.kind],
    expected: EXPECTED.includes(error.kind),
    final: error.kind === 'rejected' && rejectedIsFinal,
  });
}

/** ± 10 %, so that runners that became busy together do not ask together for ever. */
function jitter(ms: number): number {
  return Math.round(ms * (0.9 + Math.random() * 0.2));
}

/** A retryable (unless `final`) application failure. */
export function failure(
  message: string,
  type: string,
  options: { nextRetryDelayMs?: number | undefined; expected?: boolean; final?: boolean } = {},
): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type,
    nonRetryable: options.final === true,
    ...defined({ nextRetryDelay: options.nextRetryDelayMs, category: options.expected === true ? ApplicationFailureCategory.BENIGN : undefined }),
  });
}
