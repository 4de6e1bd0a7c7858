/** What an answer of the API server, or its absence, means for the caller. Pure. */
import { ComputeError, type ComputeErrorKind } from '../../ports.ts';

/** An API error as the server meant it. */
export interface ApiFailure {
  /** HTTP status. */
  readonly status: number;
  /** The API server itself has answered, with a Status object; else it was something on the way to it: a proxy, a login page. */
  readonly fromApiServer: boolean;
  /** The Status object's reason, e.g. `AlreadyExists`; empty when it has none. */
  readonly reason: string;
  /** Name of the object that the Status object is about; empty when it names none. */
  readonly objectName: string;
  readonly message: string;
  /** From the retry-after header or the Status object's details. */
  readonly retryAfterMs: number | undefined;
}

/** Cut, because an admission webhook or a proxy may answer with pages. */
const MAX_MESSAGE = 500;

/**
 * Reads client-node's ApiException, whose body is the *text* of a Status object.
 * @returns undefined for anything that is no answer of the server
 */
export function apiFailure(error: unknown): ApiFailure | undefined {
  // A DOMException has a numeric code, too: 23 for a TimeoutError.
  if (!isObject(error) || typeof error['code'] !== 'number' || error['code'] < 100)
    return undefined;
  const { code, headers } = error;
  const status = parseStatus(error['body']);
  const fromApiServer = status.kind === 'Status';
  const seconds = Number(
    (isObject(headers) ? headers['retry-after'] : undefined) ??
      status.details?.retryAfterSeconds ??
      Number.NaN,
  );
  return {
    status: code,
    fromApiServer,
    reason: (fromApiServer ? status.reason : undefined) ?? '',
    objectName: (fromApiServer ? status.details?.name : undefined) ?? '',
    message: (status.message ?? `HTTP ${code}`).slice(0, MAX_MESSAGE),
    retryAfterMs: seconds >= 0 ? seconds * 1000 : undefined,
  };
}

/** The API server's own word that there is no object of that name. Any other 404 (a proxy's, a wrong path's) says nothing about the object. */
export function isNotFound(error: unknown, name: string): boolean {
  const failure = apiFailure(error);
  return failure?.status === 404 && failure.reason === 'NotFound' && failure.objectName === name;
}

/** The API server's own word that the object of that name has another UID than the request named; of a patch it says so as of an attempt to change it. */
export function isUidMismatch(error: unknown): boolean {
  const failure = apiFailure(error);
  if (failure?.fromApiServer !== true) return false;
  return failure.status === 422
    ? failure.message.includes('metadata.uid')
    : failure.status === 409 &&
        failure.reason === 'Conflict' &&
        /UID in (the )?precondition/.test(failure.message);
}

/** Whether a pod has changed since it was read: a deletion by its resource version was refused. */
export function isChanged(error: unknown): boolean {
  return (
    error instanceof ComputeError &&
    /ResourceVersion in (the )?precondition.*HTTP 409 Conflict/is.test(error.message)
  );
}

/** The API server's own word that it does not remember what happened since that resource version. */
export function isResourceVersionExpired(error: unknown): boolean {
  const failure = apiFailure(error);
  return failure?.status === 410 && (failure.reason === 'Expired' || failure.reason === 'Gone');
}

interface StatusObject {
  kind?: string;
  reason?: string;
  message?: string;
  details?: { name?: string; retryAfterSeconds?: number };
}

function parseStatus(body: unknown): StatusObject {
  if (isObject(body)) return body;
  if (typeof body !== 'string') return {};
  try {
    const parsed: unknown = JSON.parse(body);
    return isObject(parsed) ? parsed : { message: body };
  } catch {
    // Something between us and the API server answered; its text is all there is to tell.
    return { message: body.trim() };
  }
}

/**
 * @param action what was tried, for the message: `create pod ci/runner-1`
 * @returns a ComputeError; an error that came neither from the API server nor from the network is a defect and returned as it is
 */
export function toComputeError(error: unknown, action: string): Error {
  if (error instanceof ComputeError) return error;
  const failure = apiFailure(error);
  if (failure) {
    // The exception itself is not passed on as the cause: its message carries the whole answer.
    return new ComputeError(
      kindOf(failure),
      `Cannot ${action}: ${failure.message} (HTTP ${failure.status}${failure.reason === '' ? '' : ` ${failure.reason}`})`,
      { retryAfterMs: failure.retryAfterMs },
    );
  }
  const network = networkError(error);
  if (network)
    return new ComputeError(
      'unavailable',
      `Cannot ${action}: the API server was not reached: ${network}`,
      { cause: error },
    );
  return error instanceof Error ? error : new Error(`Cannot ${action}: ${String(error)}`);
}

function kindOf({ status, fromApiServer, reason, message }: ApiFailure): ComputeErrorKind {
  if (status === 401) return 'forbidden';
  if (status === 403) return fromApiServer ? forbiddenKind(message) : 'forbidden';
  // The API server was not reached: what stands before it says nothing of what was asked for.
  if (!fromApiServer) return 'unavailable';
  // "Conflict" is two writers at once (a ResourceQuota's status, most often) and goes away; "AlreadyExists" does not.
  if (status === 409) return reason === 'AlreadyExists' ? 'invalid' : 'unavailable';
  if (status === 408 || status === 410 || status === 425 || status === 429 || status >= 500)
    return 'unavailable';
  return 'invalid';
}

/**
 * 403 is also what admission plugins answer, and only their text tells them from a lack of permission:
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/plugin/pkg/admission/resourcequota/controller.go ("exceeded quota: …") and
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
 * ("User "x" cannot create resource "pods" …").
 */
function forbiddenKind(message: string): ComputeErrorKind {
  if (/exceeded quota/.test(message)) return 'quota_exceeded';
  // The quota controller has not looked at a new quota yet: "status unknown for quota: …".
  if (/status unknown for quota/.test(message)) return 'unavailable';
  if (/is forbidden: (?!User )/.test(message) || /denied the request/.test(message))
    return 'invalid';
  return 'forbidden';
}

/**
 * How an error shows that the API server is away: no answer, or one of what stands before it. A Status object with 500 is from the server
 * itself and about this one request: a webhook that fails, most often.
 * @returns undefined for an answer of the server, and for a defect
 */
export function toOutage(error: unknown): string | undefined {
  const failure = apiFailure(error);
  if (failure === undefined) return networkError(error);
  return failure.status > 500 || (failure.status === 500 && failure.reason === '')
    ? `HTTP ${failure.status}`
    : undefined;
}

/** Codes of Node's and undici's own complaints about how they were called. */
const DEFECTS = /^(ERR_(?!TLS|SSL|SOCKET)|UND_ERR_INVALID_ARG)/;

/** What went wrong on the way, for errors of the network, TLS or a time limit; undefined for all others. */
function networkError(error: unknown): string | undefined {
  if (!isObject(error)) return undefined;
  const { name, code, message, cause } = error;
  if (name === 'TimeoutError') return 'no answer in time';
  if (name === 'AbortError') return 'the call was aborted';
  return typeof code === 'string' && !DEFECTS.test(code)
    ? `${code}: ${String(message)}`
    : networkError(cause);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
