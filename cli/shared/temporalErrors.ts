/** Maps errors of the Temporal client to errors for users. */
import {
  QueryNotRegisteredError,
  WorkflowFailedError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import {
  NamespaceNotFoundError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/common';
import { SetNotAdmittedError } from '../../activities/runnerSet/querySetStatus.ts';
import { grpcStatus } from '../../activities/shared/grpcStatus.ts';
import { PayloadKeyError } from '../../worker/codec/encryptionCodec.ts';
import { CliError } from './exit.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

// https://grpc.github.io/grpc/core/md_doc_statuscodes.html
const CANCELLED = 1;
const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const FAILED_PRECONDITION = 9;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/**
 * Codes of calls that Temporal did not answer. If the server notices an expired deadline first, it
 * resets the call, which the client reports as cancelled.
 */
const NO_ANSWER: readonly (number | undefined)[] = [UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED];

/** Object that an error is about, for messages. */
export interface ErrorSubject {
  /** Address for messages: `127.0.0.1:7233 (from TEMPORAL_ADDRESS)`. */
  readonly server: string;
  readonly namespace: string;
  readonly workflowId?: string;
}

/** Maps an error to a CliError. A CliError is returned unchanged. */
export function toCliError(error: unknown, about: ErrorSubject): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof NamespaceNotFoundError) return namespaceNotFound(about, error);
  if (error instanceof WorkflowNotFoundError) return runnerNotFound(error, about);
  if (error instanceof WorkflowExecutionAlreadyStartedError) {
    return new CliError(
      'conflict',
      `${error.workflowId} already exists; see it with "holdfast runner get ${error.workflowId}", attach to it with "holdfast run --attach ${error.workflowId}", or choose another --name`,
      { cause: error },
    );
  }
  const unreadable = payloadKeyError(error);
  if (unreadable !== undefined)
    return new CliError(
      'usage',
      `${about.workflowId === undefined ? '' : `${about.workflowId}: `}${unreadable.message}`,
      { cause: error },
    );
  if (error instanceof WorkflowFailedError)
    return new CliError(
      'failed',
      `${about.workflowId ?? 'the runner'}: ${error.cause?.message ?? error.message}`,
      { cause: error },
    );
  const { code, details = '' } = grpcStatus(error) ?? {};
  if (NO_ANSWER.includes(code)) return unreachable(about, details, error);
  if (code === PERMISSION_DENIED || code === UNAUTHENTICATED) {
    return new CliError(
      'usage',
      `Temporal at ${about.server} rejected the credential for namespace ${about.namespace}: set TEMPORAL_API_KEY or the TEMPORAL_TLS_* settings, or choose another --profile`,
      { cause: error },
    );
  }
  if (code === NOT_FOUND)
    return /namespace/i.test(details)
      ? namespaceNotFound(about, error)
      : new CliError('not_found', details, { cause: error });
  if (code === INVALID_ARGUMENT) return invalidArgument(details, error);
  return new CliError('failed', details || errorMessage(error), { cause: error });
}

/** Whether Temporal did not answer, so a retry may help. */
export function isConnectionLoss(error: unknown): boolean {
  return NO_ANSWER.includes(grpcStatus(error)?.code);
}

/**
 * Whether the query or update did not reach the workflow, so a retry may help. The workflow has
 * just started and has no handlers yet, or the task that took the update was dropped because
 * another event arrived while the workflow ended
 * (https://docs.temporal.io/references/errors#unhandled-command).
 */
export function isUndelivered(error: unknown): boolean {
  if (error instanceof QueryNotRegisteredError || error instanceof SetNotAdmittedError) return true;
  if (error instanceof WorkflowUpdateFailedError)
    return error.cause?.message.startsWith('No registered handler for update') === true;
  const { code, details = '' } = grpcStatus(error) ?? {};
  return code === FAILED_PRECONDITION && /workflow task failure/i.test(details);
}

const TRANSPORT_HINTS: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [/ECONNREFUSED/, 'connection refused'],
  [/ENOTFOUND|EAI_AGAIN|[Nn]ame resolution/, 'unknown host'],
  [/certificate|SSL|TLS|wrong version/i, 'the TLS handshake failed'],
];

/**
 * Returns the error for an unreachable server.
 * @param reason - error text of the transport
 */
export function unreachable(about: ErrorSubject, reason: string, cause: unknown): CliError {
  const hint = TRANSPORT_HINTS.find(([pattern]) => pattern.test(reason))?.[1] ?? 'no answer';
  return new CliError(
    'unreachable',
    `cannot reach Temporal at ${about.server}: ${hint}; set --address, TEMPORAL_ADDRESS or --profile to a running server (for a local one: temporal server start-dev)`,
    { cause },
  );
}

function namespaceNotFound(about: ErrorSubject, cause: unknown): CliError {
  return new CliError(
    'usage',
    `namespace "${about.namespace}" does not exist at Temporal ${about.server}: set --namespace or TEMPORAL_NAMESPACE, or create it with "temporal operator namespace create -n ${about.namespace}"`,
    { cause },
  );
}

function runnerNotFound(error: WorkflowNotFoundError, about: ErrorSubject): CliError {
  const id = about.workflowId ?? error.workflowId;
  return /already completed/i.test(error.message)
    ? new CliError(
        'not_found',
        `${id} has already ended; see it with "holdfast runner get ${id}"`,
        { cause: error },
      )
    : new CliError(
        'not_found',
        `no runner ${id} in namespace ${about.namespace}; see "holdfast runner list --all"`,
        { cause: error },
      );
}

function invalidArgument(details: string, cause: unknown): CliError {
  const hint = /search attribute|Runner(Phase|Set|Scope|Outcome|Cause|Name|Place)\b/i.test(details)
    ? '; "holdfast doctor" prints the commands that register the search attributes'
    : '';
  return new CliError('usage', `Temporal rejected the request: ${details}${hint}`, { cause });
}

/** Returns the error about a missing key in a chain of causes. */
function payloadKeyError(error: unknown): PayloadKeyError | undefined {
  for (let each: unknown = error; each instanceof Error; each = each.cause)
    if (each instanceof PayloadKeyError) return each;
  return undefined;
}
