/** How the errors of the ports become Temporal failures: which are retried, when, and how loudly. */
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  CiServerError,
  ComputeError,
  UnknownCredentialError,
  type CiServerErrorKind,
  type ComputeErrorKind,
} from '../ports.ts';
import { FAILURE_TYPES } from '../../core/activities/index.ts';

/** Delays of retries that are not the retry policy's own backoff, in ms. */
export interface RetryDelays {
  readonly credentialsRetryMs: number;
  readonly busyRetryMs?: number;
  /** Up to which the delay of a busy one doubles. @default busyRetryMs: it does not */
  readonly maxBusyRetryMs?: number;
}

/** Of a server that answers others, and of answers that name no pace: 1 s, doubling up to a minute. */
const FIRST_UNAVAILABLE_RETRY_MS = 1_000;
const MAX_UNAVAILABLE_RETRY_MS = 60_000;
const QUOTA_RETRY_MS = 30_000;
/** Of what a rule of the cluster's has to allow. */
const DENIED_RETRY_MS = 60_000;

/** Answers that are part of the plan. */
const EXPECTED: readonly CiServerErrorKind[] = ['busy', 'rate_limited'];

/** Refusals that the same request gets again; a name that is taken stays so. */
const FINAL: readonly CiServerErrorKind[] = ['rejected', 'name_taken'];

/** Without a `retryMs` it is often over a moment later, and the delay doubles: see {@link unavailableRetryMs}. */
const COMPUTE_FAILURE: Readonly<Record<ComputeErrorKind, { type: string; retryMs?: number }>> = {
  quota_exceeded: { type: FAILURE_TYPES.quota_exceeded, retryMs: QUOTA_RETRY_MS },
  invalid: { type: FAILURE_TYPES.computeRejected, retryMs: DENIED_RETRY_MS },
  // Somebody may have changed its labels, and change them back.
  foreign: { type: FAILURE_TYPES.foreignObject, retryMs: DENIED_RETRY_MS },
  // An API server that has just started knows no Role yet, and forbids everything (https://github.com/kubernetes/kubernetes/issues/121635).
  forbidden: { type: FAILURE_TYPES.computeForbidden },
  unavailable: { type: FAILURE_TYPES.computeUnavailable },
};

/**
 * A port's error as the failure that makes Temporal do the right thing: the retry's delay where the world named one,
 * BENIGN where the failure is part of the plan (busy, rate limited). Anything unknown is passed on as it is.
 * @param refusalIsFinal - what is asked for can be left undone (a runner that cannot be made). False for what has to be done: there a
 *   refusal (an unknown 422 to a removal, an admission webhook's to a deletion) says nothing final, and is a wait with a reason
 * @param times - how often it has been refused for this reason, this time included: each reason has a retry clock of its own
 */
export function toFailure(
  error: unknown,
  pace: RetryDelays,
  refusalIsFinal: boolean,
  times = 1,
): unknown {
  if (error instanceof CiServerError) return ciFailure(error, pace, refusalIsFinal, times);
  if (error instanceof ComputeError) {
    if (error.kind === 'invalid' && refusalIsFinal)
      return applicationFailure(error.message, FAILURE_TYPES.podInvalid, { final: true });
    const { type, retryMs } = COMPUTE_FAILURE[error.kind];
    return applicationFailure(error.message, type, {
      nextRetryDelayMs: error.retryAfterMs ?? retryMs ?? unavailableRetryMs(times),
    });
  }
  if (error instanceof UnknownCredentialError) {
    // Retried: the credential may be added to the config and the worker restarted while the runner waits.
    return applicationFailure(error.message, FAILURE_TYPES.unknownCredential, {
      nextRetryDelayMs: pace.credentialsRetryMs,
    });
  }
  return error;
}

function ciFailure(
  error: CiServerError,
  pace: RetryDelays,
  refusalIsFinal: boolean,
  times: number,
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
  const final = FINAL.includes(error.kind) && refusalIsFinal;
  return applicationFailure(error.message, FAILURE_TYPES[error.kind], {
    nextRetryDelayMs: delays[error.kind] ?? (final ? undefined : unavailableRetryMs(times)),
    expected: EXPECTED.includes(error.kind),
    final,
  });
}

function unavailableRetryMs(times: number): number {
  return exponentialBackoff(FIRST_UNAVAILABLE_RETRY_MS, times, MAX_UNAVAILABLE_RETRY_MS);
}

/** The delay after so many times, in ms. */
export function exponentialBackoff(firstMs: number, times: number, longestMs = firstMs): number {
  return Math.min(firstMs * 2 ** Math.max(0, times - 1), Math.max(firstMs, longestMs));
}

/** ± 10 %, so that runners that became busy together do not ask together for ever. */
function jitter(ms: number): number {
  return Math.round(ms * (0.9 + Math.random() * 0.2));
}

/** A retryable (unless `final`) application failure. */
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
