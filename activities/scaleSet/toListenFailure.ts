import { FAILURE_TYPES } from '../../core/activities/index.ts';
import type { UnknownCredentialError } from '../ports/ciServer.ts';
import { CiServerError } from '../ports/ciServerError.ts';
import { applicationFailure, exponentialBackoff, toFailure } from '../shared/failures.ts';
import { CREDENTIALS_RETRY_MS } from './listenerScaleSet.ts';

/** Delays after a conflict: another process has the session (ms). */
const FIRST_CONFLICT_RETRY_MS = 5_000;
const MAX_CONFLICT_RETRY_MS = 5 * 60_000;
/** Delay after a rejection that only a person can change, such as the name of the scale set (ms). */
const REJECTED_RETRY_MS = 60_000;
/** Delay after a worker without the credential (ms). Another one of the task queue may have it. */
const FIRST_UNKNOWN_CREDENTIAL_RETRY_MS = 5_000;
/** Time after which probably no worker has the credential (ms). */
const UNKNOWN_CREDENTIAL_MS = 60_000;
/** Delay from then on (ms). */
const UNKNOWN_CREDENTIAL_RETRY_MS = 60_000;

/**
 * Maps an error of a listener to a Temporal failure with its retry delay.
 * @param options.times - number of consecutive failures
 * @param options.failingMs - time since the first of them (ms)
 */
export function toListenFailure(
  error: CiServerError | UnknownCredentialError,
  { times, failingMs }: { readonly times: number; readonly failingMs: number },
): unknown {
  if (!(error instanceof CiServerError)) {
    const credentialsRetryMs =
      failingMs < UNKNOWN_CREDENTIAL_MS
        ? FIRST_UNKNOWN_CREDENTIAL_RETRY_MS
        : UNKNOWN_CREDENTIAL_RETRY_MS;
    return toFailure(error, { credentialsRetryMs }, { rejectionIsFinal: false });
  }
  const { kind, message } = error;
  if (kind === 'conflict')
    return applicationFailure(message, FAILURE_TYPES.conflict, {
      expected: true,
      nextRetryDelayMs: exponentialBackoff(FIRST_CONFLICT_RETRY_MS, times, MAX_CONFLICT_RETRY_MS),
    });
  if (kind === 'rejected' || kind === 'name_taken')
    return applicationFailure(message, FAILURE_TYPES[kind], {
      nextRetryDelayMs: REJECTED_RETRY_MS,
    });
  const pace = { credentialsRetryMs: CREDENTIALS_RETRY_MS };
  return toFailure(error, pace, { rejectionIsFinal: false, times });
}
