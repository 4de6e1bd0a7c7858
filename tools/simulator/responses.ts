/**
 * The bodies of GitHub's responses. Sources: GitHub's REST documentation, and recorded responses in
 * public issues.
 */

export const DOCS = 'https://docs.github.com/rest';
const RATE_DOCS = 'https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api';

export interface Answer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

const error = (status: number, message: string, documentation_url: string): Answer => ({
  status,
  body: { message, documentation_url, status: String(status) },
});

export const badCredentials = (): Answer => error(401, 'Bad credentials', DOCS);
export const requiresAuthentication = (): Answer => error(401, 'Requires authentication', DOCS);
export const badJwt = (): Answer => error(401, 'A JSON web token could not be decoded', DOCS);
export const jwtExpired = (): Answer =>
  error(
    401,
    "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
    DOCS,
  );
export const jwtTooLong = (): Answer =>
  error(401, "'Expiration time' claim ('exp') is too far in the future", DOCS);
export const integrationNotFound = (): Answer => error(404, 'Integration not found', DOCS);
export const notFound = (docs: string = DOCS): Answer => error(404, 'Not Found', docs);
export const forbidden = (kind: 'token' | 'app', docs: string = DOCS): Answer =>
  error(
    403,
    `Resource not accessible by ${kind === 'app' ? 'integration' : 'personal access token'}`,
    docs,
  );
export const nameTaken = (name: string, docs: string): Answer =>
  error(409, `Already exists - A runner with the name ${name} already exists.`, docs);
export const invalid = (message: string, docs: string): Answer => error(422, message, docs);

/** Body of DELETE for a busy runner. Both texts exist; the older one has the unmatched quote. */
export const busy = (name: string, text: 'current' | 'older', docs: string): Answer =>
  invalid(
    text === 'older'
      ? `Bad request - Runner "${name}" is still running a job"`
      : `Runner "${name}" is currently running a job and cannot be deleted`,
    docs,
  );

export const primaryLimit = (status: 403 | 429, whose: string): Answer =>
  error(
    status,
    `API rate limit exceeded for ${whose}. If you reach out to GitHub Support for help, please include the request ID 0B1E:12345:ABCDEF:123456 and timestamp ${new Date().toISOString().replace('T', ' ').slice(0, 19)} UTC.`,
    RATE_DOCS,
  );

/** A workflow run that has ended and so cannot be cancelled. */
export const runEnded = (message: string, docs: string): Answer => error(409, message, docs);
/** A job that cannot run again, or not yet. */
export const rerunRefused = (message: string, docs: string): Answer => error(403, message, docs);

/** Variants of GitHub's response about a secondary limit. */
export type SecondaryForm =
  /** Current variant: `#about-secondary-rate-limits`. */
  | 'modern'
  /** `#secondary-rate-limits`. */
  | 'secondary'
  /** The oldest: "abuse detection mechanism", `#abuse-rate-limits`. */
  | 'abuse'
  /** Too many writes: "temporarily blocked from content creation". */
  | 'content';

const SUPPORT =
  'If you reach out to GitHub Support for help, please include the request ID 0B1E:12345:ABCDEF:123456.';

export function secondaryLimit(
  status: 403 | 429,
  form: SecondaryForm,
  retryAfterS?: number,
): Answer {
  const texts: Record<SecondaryForm, [string, string]> = {
    modern: [
      `You have exceeded a secondary rate limit. Please wait a few minutes before you try again. ${SUPPORT}`,
      `${RATE_DOCS}#about-secondary-rate-limits`,
    ],
    secondary: [
      'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
      'https://docs.github.com/en/free-pro-team@latest/rest/overview/resources-in-the-rest-api#secondary-rate-limits',
    ],
    abuse: [
      'You have triggered an abuse detection mechanism. Please wait a few minutes before you try again.',
      'https://docs.github.com/rest/overview/resources-in-the-rest-api#abuse-rate-limits',
    ],
    content: [
      `You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later. ${SUPPORT}`,
      `${RATE_DOCS}#about-secondary-rate-limits`,
    ],
  };
  const [message, docs] = texts[form];
  const answer = error(status, message, docs);
  return retryAfterS === undefined
    ? answer
    : { ...answer, headers: { 'retry-after': String(retryAfterS) } };
}
