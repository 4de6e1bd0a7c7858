import type { CiServerErrorKind } from '../../ports/ciServerError.ts';

/** Kind of a request. The same status means different things for different requests. */
export type RestCall =
  | 'jit'
  | 'registration_token'
  | 'scale_sets'
  | 'installation_token'
  | 'runner'
  | 'remove'
  | 'list'
  | 'group'
  | 'jobs'
  | 'rerun'
  | 'deliveries';

/** A response that is not a success, as it was received. */
export interface ErrorResponse {
  readonly call: RestCall;
  readonly status: number;
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string | number | undefined>>;
  /** Parsed JSON, or the text if the body is not JSON. */
  readonly body: unknown;
}

/**
 * Meaning of a response. `not_found` is a 404 of GitHub itself and not final: GitHub returns 404,
 * not 403, to a credential that cannot see the scope, so the caller must check whether the scope
 * can be listed.
 */
export interface Classification {
  readonly kind: CiServerErrorKind | 'not_found';
  /**
   * Time to wait that the server requests (ms). `undefined` with `rate_limited` means that it
   * requests none; then the wait must be at least a minute.
   */
  readonly retryAfterMs?: number | undefined;
  /** Message of the server, or the problem with the response. */
  readonly reason: string;
}

/**
 * Maximum wait that is accepted from a server (ms). A longer one is an error, such as a reset time
 * in ms, so the request is sent again after a day.
 */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

/**
 * Messages of the primary limit ("API rate limit exceeded for …") and of the secondary limit in its
 * present and older forms. The documentation_url is not used, because its anchor has changed twice
 * (#abuse-rate-limits, #secondary-rate-limits, #about-secondary-rate-limits).
 * https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
 */
const LIMIT_TEXT =
  /rate limit|abuse detection|temporarily blocked from content creation|submitted too quickly|too many requests/i;

/**
 * Maximum length of the message of a server or of a failed request (characters). Messages are
 * stored in histories and logs.
 */
const MAX_MESSAGE = 300;

/**
 * Message of a 422 for a DELETE of a busy runner: `Bad request - Runner "X" is still running a
 * job"` or `Runner "X" is currently running a job and cannot be deleted`.
 */
const BUSY_TEXT = /running a job/i;

/**
 * Message of a 403 for a JIT request that a better credential would not fix: the group, or a
 * setting of the organization or the repository, forbids it.
 */
const UNUSABLE_GROUP_TEXT =
  /runner group|self-hosted runners? (is|are) (disabled|not allowed)|runners are disabled/i;

/** Message of a 403 for a rerun before the workflow run has ended. */
const ACTIVE_RUN_TEXT = /already running/i;

/**
 * Message of a 403 for a rerun that a better credential would fix. Every other 403 is about the run,
 * such as "Unable to retry this workflow run because it was created over a month ago".
 */
const NO_ACCESS_TEXT =
  /not accessible|permission|must have|admin rights|\bSSO\b|suspended|blocked/i;

/**
 * Classifies a response by call, status, headers and message.
 * @param nowMs - this machine's clock (ms since the epoch), used if the response has no date
 */
export function classifyResponse(answer: ErrorResponse, nowMs: number): Classification {
  const classification = classify(answer, nowMs);
  return { ...classification, reason: classification.reason.slice(0, MAX_MESSAGE) };
}

/** Classifies by the whole message, including its end, before it is shortened. */
function classify(answer: ErrorResponse, nowMs: number): Classification {
  const { call, status, headers } = answer;
  const message = messageOf(answer.body);
  const reason = message ?? `status ${status} without a message`;

  // Check this first: a limit has the same status 403 as a missing permission and must never be
  // classified as one.
  if (status === 429 || (status === 403 && isRateLimited(answer, message)))
    return { kind: 'rate_limited', retryAfterMs: retryDelayMs(headers, nowMs), reason };
  if (status >= 500 || status === 408 || status === 425)
    return { kind: 'unavailable', retryAfterMs: retryAfter(headers, nowMs), reason };
  if (status === 407)
    return {
      kind: 'unavailable',
      reason: 'the proxy asks for authentication: check the credential\'s "proxy" setting',
    };
  if (message === undefined && isHtml(answer)) {
    return {
      kind: 'unavailable',
      reason: `status ${status} with an HTML page instead of the API's JSON: something between here and GitHub answered (proxy, firewall, login page)`,
    };
  }
  switch (status) {
    case 401:
      return { kind: 'credentials', reason };
    case 403:
      if (call === 'rerun' && ACTIVE_RUN_TEXT.test(reason)) return { kind: 'busy', reason };
      if (call === 'rerun' && !NO_ACCESS_TEXT.test(reason)) return { kind: 'rejected', reason };
      return {
        kind: call === 'jit' && UNUSABLE_GROUP_TEXT.test(reason) ? 'rejected' : 'credentials',
        reason,
      };
    case 404:
      return { kind: 'not_found', reason };
    case 409:
      // Every other conflict depends on the state of the server, which changes.
      return {
        kind: call === 'jit' && /already exists/i.test(reason) ? 'name_taken' : 'unavailable',
        reason,
      };
    case 422:
      if (call === 'remove' && BUSY_TEXT.test(reason)) return { kind: 'busy', reason };
      // A truncated response may have had either message.
      if (message === undefined) return { kind: 'unavailable', reason };
      return {
        kind: call === 'jit' && /already exists/i.test(reason) ? 'name_taken' : 'rejected',
        reason,
      };
    default:
      return status >= 400
        ? { kind: 'rejected', reason }
        : { kind: 'unavailable', reason: `unexpected status ${status}` };
  }
}

/**
 * Returns whether the response is typical for a server in an outage, and does not concern a single
 * request.
 */
export function isOutage(answer: ErrorResponse): boolean {
  return answer.status >= 500 || (messageOf(answer.body) === undefined && isHtml(answer));
}

/**
 * Classifies a request without a response (connection refused, reset, timeout, TLS, DNS, proxy).
 */
export function classifyFailure(error: unknown): Classification {
  const causes = causeChain(error);
  if (causes.some((cause) => cause.name === 'TimeoutError'))
    return { kind: 'unavailable', reason: 'no answer in time' };
  const code = causes.map((cause) => cause.code).findLast((each) => typeof each === 'string');
  const last = causes.at(-1);
  const text = (last?.message || last?.name || String(error)).slice(0, MAX_MESSAGE);
  const reason = code === undefined || text.includes(code) ? text : `${text} (${code})`;
  const tls = code !== undefined && /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL/.test(code);
  return {
    kind: 'unavailable',
    reason: tls
      ? `${reason}; if the server has a private certificate authority, name it in the credential's "caFile"`
      : reason,
  };
}

/**
 * Returns whether the connection was closed during the request, as happens to kept-alive
 * connections. A read is then retried once.
 */
export function isConnectionReset(error: unknown): boolean {
  return causeChain(error).some((cause) =>
    ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(String(cause.code)),
  );
}

function isRateLimited({ headers }: ErrorResponse, message: string | undefined): boolean {
  return (
    headers['retry-after'] !== undefined ||
    String(headers['x-ratelimit-remaining']) === '0' ||
    LIMIT_TEXT.test(message ?? '')
  );
}

/**
 * Applies GitHub's rule: `retry-after`; otherwise the reset time if no requests remain; otherwise
 * at least a minute, and longer each time.
 */
function retryDelayMs(headers: ErrorResponse['headers'], nowMs: number): number | undefined {
  const said = retryAfter(headers, nowMs);
  if (said !== undefined) return said;
  const reset = Number(headers['x-ratelimit-reset']);
  if (String(headers['x-ratelimit-remaining']) !== '0' || !Number.isFinite(reset)) return undefined;
  // The reset time uses the server's clock. One second is added because it is rounded down.
  return clampWait(reset * 1000 - serverNow(headers, nowMs) + 1000);
}

function retryAfter(headers: ErrorResponse['headers'], nowMs: number): number | undefined {
  const value = headers['retry-after'];
  if (value === undefined || value === '') return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return clampWait(seconds * 1000);
  const date = Date.parse(String(value));
  return Number.isNaN(date) ? undefined : clampWait(date - serverNow(headers, nowMs));
}

const serverNow = (headers: ErrorResponse['headers'], nowMs: number): number => {
  const date = Date.parse(String(headers['date']));
  return Number.isNaN(date) ? nowMs : date;
};

const clampWait = (ms: number): number => Math.min(Math.max(ms, 1000), MAX_WAIT_MS);

function messageOf(body: unknown): string | undefined {
  if (typeof body === 'string') {
    const text = body.trim();
    // Of an HTML page only the text about the limit matters; its markup does not help a reader.
    if (text === '' || text.startsWith('<')) return LIMIT_TEXT.exec(text)?.[0];
    return text;
  }
  if (
    typeof body !== 'object' ||
    body === null ||
    !('message' in body) ||
    typeof body.message !== 'string'
  )
    return undefined;
  const errors =
    'errors' in body && Array.isArray(body.errors)
      ? body.errors.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)))
      : [];
  return [body.message, ...errors].join(': ');
}

const isHtml = ({ headers, body }: ErrorResponse): boolean =>
  String(headers['content-type'] ?? '').includes('html') ||
  (typeof body === 'string' && body.trimStart().startsWith('<'));

/**
 * Returns an error and its causes. They are recognized by their fields and not by their class,
 * because errors of Node come from another realm in some runtimes.
 */
function causeChain(error: unknown): { name?: string; message?: string; code?: unknown }[] {
  const chain: { name?: string; message?: string; code?: unknown }[] = [];
  let next = error;
  while (typeof next === 'object' && next !== null && 'message' in next && chain.length < 10) {
    chain.push(next as { message: string });
    const { errors, cause } = next as { errors?: unknown[]; cause?: unknown };
    next = errors?.[0] ?? cause;
  }
  return chain;
}
