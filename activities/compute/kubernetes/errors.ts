/** Maps errors of the API server and of the connection to it. Pure. */
import { ComputeError, type ComputeErrorKind } from '../../ports/computeError.ts';

/** Error response of the API server. */
export interface ApiFailure {
  /** HTTP status. */
  readonly status: number;
  /**
   * Whether the API server itself sent the response, with a Status object. Otherwise a proxy or a
   * login page did.
   */
  readonly fromApiServer: boolean;
  /** Reason in the Status object, such as `AlreadyExists`. Empty if it has none. */
  readonly reason: string;
  /** Name of the object in the Status object. Empty if it has none. */
  readonly objectName: string;
  readonly message: string;
  /** Time to wait, from the Retry-After header or the details of the Status object (ms). */
  readonly retryAfterMs: number | undefined;
}

/** Maximum length of a message (characters). An admission webhook or a proxy may send pages. */
const MAX_MESSAGE = 500;

/**
 * Reads client-node's ApiException, whose body is the *text* of a Status object.
 * @returns `undefined` if the error is not a response of the server
 */
export function apiFailure(error: unknown): ApiFailure | undefined {
  // A DOMException has a numeric code too: 23 for a TimeoutError.
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

/**
 * Returns whether the API server itself reports that no object with this name exists. Every other
 * 404 (of a proxy, or for a wrong path) says nothing about the object.
 */
export function isNotFound(error: unknown, name: string): boolean {
  const failure = apiFailure(error);
  return failure?.status === 404 && failure.reason === 'NotFound' && failure.objectName === name;
}

/**
 * Returns whether the API server itself reports that the object has another UID than the request.
 * For a patch, it reports an attempt to change the UID.
 */
export function isUidMismatch(error: unknown): boolean {
  const failure = apiFailure(error);
  if (failure?.fromApiServer !== true) return false;
  return failure.status === 422
    ? failure.message.includes('metadata.uid')
    : failure.status === 409 &&
        failure.reason === 'Conflict' &&
        /UID in (the )?precondition/.test(failure.message);
}

/**
 * Returns whether a deletion by resource version was rejected because the pod has changed since it
 * was read.
 */
export function isChanged(error: unknown): boolean {
  return (
    error instanceof ComputeError &&
    /ResourceVersion in (the )?precondition.*HTTP 409 Conflict/is.test(error.message)
  );
}

/**
 * Returns whether the API server itself reports that it no longer has the changes since this
 * resource version.
 */
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
    // A proxy answered. Its text is all that is known.
    return { message: body.trim() };
  }
}

/**
 * Maps an error to a ComputeError.
 * @param action - the operation, for the message: `create pod ci/runner-1`
 * @returns an error that is neither a response nor a network error unchanged, because it is a
 * defect
 */
export function toComputeError(error: unknown, action: string): Error {
  if (error instanceof ComputeError) return error;
  const failure = apiFailure(error);
  if (failure) {
    // The exception is not set as the cause, because its message contains the whole response.
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
  // The request did not reach the API server, and the response of a proxy says nothing about it.
  if (!fromApiServer) return 'unavailable';
  // "Conflict" means two concurrent writers (mostly of a ResourceQuota's status) and is transient.
  // "AlreadyExists" is not.
  if (status === 409) return reason === 'AlreadyExists' ? 'invalid' : 'unavailable';
  if (status === 408 || status === 410 || status === 425 || status === 429 || status >= 500)
    return 'unavailable';
  return 'invalid';
}

/**
 * Classifies a 403. Admission plugins use it too, and only its text distinguishes them from a
 * missing permission:
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/plugin/pkg/admission/resourcequota/controller.go
 * ("exceeded quota: …") and
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
 * ("User "x" cannot create resource "pods" …").
 */
function forbiddenKind(message: string): ComputeErrorKind {
  if (/exceeded quota/.test(message)) return 'quota_exceeded';
  // The quota controller has not processed a new quota yet: "status unknown for quota: …".
  if (/status unknown for quota/.test(message)) return 'unavailable';
  if (/is forbidden: (?!User )/.test(message) || /denied the request/.test(message))
    return 'invalid';
  return 'forbidden';
}

/**
 * Returns the reason if the error means an outage of the API server: no response, or one of a proxy
 * in front of it. A Status object with 500 is from the server itself and concerns this one request,
 * mostly because a webhook fails.
 * @returns `undefined` for a response of the server and for a defect
 */
export function toOutage(error: unknown): string | undefined {
  const failure = apiFailure(error);
  if (failure === undefined) return networkError(error);
  return failure.status > 500 || (failure.status === 500 && failure.reason === '')
    ? `HTTP ${failure.status}`
    : undefined;
}

/** Codes of errors with which Node and undici reject a wrong call. */
const DEFECTS = /^(ERR_(?!TLS|SSL|SOCKET)|UND_ERR_INVALID_ARG)/;

/**
 * Returns the message of an error of the network, of TLS or of a timeout; `undefined` for all
 * others.
 */
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
