import { describe, expect, test } from '@jest/globals';
import {
  classifyResponse,
  classifyFailure,
  type Classification,
  type ErrorResponse,
  type RestCall,
  isConnectionReset,
} from '../../../activities/ciServers/github/classify.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const DOCS = 'https://docs.github.com/rest';
const SECONDARY =
  'You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to GitHub Support for help, please include the request ID 0400:1C8:1A2B3C:4D5E6F:65E1C2D0.';

type Row = [
  title: string,
  answer: Omit<ErrorResponse, 'headers' | 'call'> & {
    call?: RestCall;
    headers?: ErrorResponse['headers'];
  },
  expected: Partial<Classification>,
];

const rows: Row[] = [
  [
    '403 for a rerun before the end of its run',
    { call: 'rerun', status: 403, body: { message: 'This workflow is already running' } },
    { kind: 'busy' },
  ],
  [
    '403 for a rerun that is too late',
    {
      call: 'rerun',
      status: 403,
      body: {
        message: 'Unable to retry this workflow run because it was created over a month ago',
      },
    },
    { kind: 'rejected' },
  ],
  [
    '403 for a rerun whose message has "associated", which is not about SSO',
    {
      call: 'rerun',
      status: 403,
      body: { message: 'The check suite associated with this run has expired' },
    },
    { kind: 'rejected' },
  ],
  [
    '403 for a rerun without SSO',
    { call: 'rerun', status: 403, body: { message: 'This token needs SSO authorization' } },
    { kind: 'credentials' },
  ],
  [
    '403 for a rerun without the permission',
    { call: 'rerun', status: 403, body: { message: 'Resource not accessible by integration' } },
    { kind: 'credentials' },
  ],
  // DELETE of a busy runner, in both texts
  [
    '422 busy, 2022 text with its stray quote',
    {
      call: 'remove',
      status: 422,
      body: {
        message: 'Bad request - Runner "r-1" is still running a job"',
        documentation_url: DOCS,
      },
    },
    { kind: 'busy' },
  ],
  [
    '422 busy, 2025 text',
    {
      call: 'remove',
      status: 422,
      body: {
        message: 'Runner "r-1" is currently running a job and cannot be deleted',
        documentation_url: DOCS,
        status: '422',
      },
    },
    { kind: 'busy' },
  ],
  [
    '422 busy with an exhausted primary limit',
    {
      call: 'remove',
      status: 422,
      headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1772366400' },
      body: { message: 'Runner "r" is currently running a job and cannot be deleted' },
    },
    { kind: 'busy' },
  ],
  [
    '422 of another kind to a DELETE is not busy',
    {
      call: 'remove',
      status: 422,
      body: {
        message: 'Validation Failed',
        errors: ['runner_id is invalid'],
        documentation_url: DOCS,
      },
    },
    { kind: 'rejected', reason: 'Validation Failed: runner_id is invalid' },
  ],
  [
    '422 whose body was cut off is neither busy nor rejected',
    { call: 'remove', status: 422, body: '' },
    { kind: 'unavailable' },
  ],
  [
    'busy text to another call is not busy',
    { call: 'jit', status: 422, body: { message: 'Runner "r" is currently running a job' } },
    { kind: 'rejected' },
  ],
  [
    '422 to JIT without a group',
    {
      call: 'jit',
      status: 422,
      body: {
        message: "Invalid request.\n\nFor 'links/3/schema', \"runner_group_id\" wasn't supplied.",
        documentation_url: DOCS,
      },
    },
    { kind: 'rejected' },
  ],
  [
    '422 busy at the end of a long message, of which some is kept',
    {
      call: 'remove',
      status: 422,
      body: { message: 'x'.repeat(100_000), errors: ['Runner "r" is still running a job'] },
    },
    { kind: 'busy', reason: 'x'.repeat(300) },
  ],
  // primary limit
  [
    'primary limit as 403',
    {
      status: 403,
      headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1000 + 600) },
      body: {
        message: 'API rate limit exceeded for installation ID 4711.',
        documentation_url: `${DOCS}/overview/rate-limits-for-the-rest-api`,
      },
    },
    { kind: 'rate_limited', retryAfterMs: 601_000 },
  ],
  [
    'primary limit as 429',
    {
      status: 429,
      headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1000 + 30) },
      body: { message: 'API rate limit exceeded for user ID 1.' },
    },
    { kind: 'rate_limited', retryAfterMs: 31_000 },
  ],
  [
    "primary limit, this machine 10 minutes ahead: the server's date counts",
    {
      status: 403,
      headers: {
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': String(NOW / 1000 - 300),
        date: new Date(NOW - 600_000).toUTCString(),
      },
      body: { message: 'API rate limit exceeded for user ID 1.' },
    },
    { kind: 'rate_limited', retryAfterMs: 301_000 },
  ],
  [
    'reset in the past: a second',
    {
      status: 403,
      headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1000 - 5) },
      body: { message: 'API rate limit exceeded for user ID 1.' },
    },
    { kind: 'rate_limited', retryAfterMs: 1000 },
  ],
  [
    'reset in milliseconds is invalid: a day',
    {
      status: 403,
      headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW + 5000) },
      body: { message: 'API rate limit exceeded for user ID 1.' },
    },
    { kind: 'rate_limited', retryAfterMs: 86_400_000 },
  ],
  // secondary limit
  [
    'secondary limit, modern, 403 with retry-after',
    {
      call: 'remove',
      status: 403,
      headers: { 'retry-after': '60', 'x-ratelimit-remaining': '4999' },
      body: {
        message: SECONDARY,
        documentation_url: `${DOCS}/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits`,
      },
    },
    { kind: 'rate_limited', retryAfterMs: 60_000 },
  ],
  [
    'secondary limit, modern, 403 without retry-after',
    {
      call: 'remove',
      status: 403,
      headers: { 'x-ratelimit-remaining': '4999', 'x-ratelimit-reset': '1772366400' },
      body: {
        message: SECONDARY,
        documentation_url: `${DOCS}/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits`,
      },
    },
    { kind: 'rate_limited' },
  ],
  [
    'secondary limit, modern, 429',
    { call: 'jit', status: 429, body: { message: SECONDARY } },
    { kind: 'rate_limited' },
  ],
  [
    'secondary limit, 2022 link',
    {
      status: 403,
      body: {
        message: SECONDARY,
        documentation_url: `${DOCS}/overview/resources-in-the-rest-api#secondary-rate-limits`,
      },
    },
    { kind: 'rate_limited' },
  ],
  [
    'secondary limit, abuse form',
    {
      status: 403,
      headers: { 'retry-after': '120' },
      body: {
        message:
          'You have triggered an abuse detection mechanism. Please wait a few minutes before you try again.',
        documentation_url: `${DOCS}/overview/resources-in-the-rest-api#abuse-rate-limits`,
      },
    },
    { kind: 'rate_limited', retryAfterMs: 120_000 },
  ],
  [
    'an empty retry-after counts as none',
    {
      status: 403,
      headers: { 'retry-after': '' },
      body: { message: 'You have exceeded a secondary rate limit.' },
    },
    { kind: 'rate_limited', retryAfterMs: undefined },
  ],
  [
    'secondary limit, content creation',
    {
      call: 'jit',
      status: 403,
      body: {
        message:
          'You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later.',
      },
    },
    { kind: 'rate_limited' },
  ],
  [
    'retry-after as a date',
    {
      status: 429,
      headers: { 'retry-after': new Date(NOW + 90_000).toUTCString() },
      body: { message: 'Too many requests' },
    },
    { kind: 'rate_limited', retryAfterMs: 90_000 },
  ],
  [
    '429 as a page',
    {
      status: 429,
      headers: { 'content-type': 'text/html' },
      body: '<html><title>Too Many Requests</title></html>',
    },
    { kind: 'rate_limited' },
  ],
  [
    '403 page of the abuse detection',
    {
      status: 403,
      headers: { 'content-type': 'text/html' },
      body: '<html><body><h1>Whoa there!</h1><p>You have triggered an abuse detection mechanism.</p></body></html>',
    },
    { kind: 'rate_limited' },
  ],
  [
    "a limit's link alone makes no limit",
    {
      status: 403,
      body: {
        message: 'Resource not accessible by integration',
        documentation_url: `${DOCS}/rate-limits-for-the-rest-api#about-secondary-rate-limits`,
      },
    },
    { kind: 'credentials' },
  ],
  // credentials
  [
    '401',
    { status: 401, body: { message: 'Bad credentials', documentation_url: DOCS, status: '401' } },
    { kind: 'credentials', reason: 'Bad credentials' },
  ],
  [
    '403 permission of an app',
    {
      call: 'remove',
      status: 403,
      headers: { 'x-ratelimit-remaining': '4321' },
      body: { message: 'Resource not accessible by integration', documentation_url: DOCS },
    },
    { kind: 'credentials' },
  ],
  [
    '403 permission of a token',
    {
      call: 'jit',
      status: 403,
      body: { message: 'Resource not accessible by personal access token' },
    },
    { kind: 'credentials' },
  ],
  [
    '403 for lack of admin rights',
    { call: 'list', status: 403, body: { message: 'Must have admin rights to Repository.' } },
    { kind: 'credentials' },
  ],
  [
    '403 SSO',
    {
      call: 'list',
      status: 403,
      body: {
        message:
          'Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization.',
      },
    },
    { kind: 'credentials' },
  ],
  [
    '403 installation suspended',
    {
      call: 'installation_token',
      status: 403,
      body: { message: 'This installation has been suspended' },
    },
    { kind: 'credentials' },
  ],
  [
    '403 to JIT for the group',
    {
      call: 'jit',
      status: 403,
      body: { message: 'This runner group is not available to this repository.' },
    },
    { kind: 'rejected' },
  ],
  [
    '403 to JIT because a setting forbids runners',
    {
      call: 'jit',
      status: 403,
      body: { message: 'Repository level self-hosted runners are disabled on this repository.' },
    },
    { kind: 'rejected' },
  ],
  ['403 without a body', { call: 'remove', status: 403, body: '' }, { kind: 'credentials' }],
  // 404, 409
  [
    '404 is not conclusive',
    {
      call: 'remove',
      status: 404,
      body: { message: 'Not Found', documentation_url: DOCS, status: '404' },
    },
    { kind: 'not_found' },
  ],
  [
    "404 page is not the API's",
    {
      call: 'remove',
      status: 404,
      headers: { 'content-type': 'text/html; charset=utf-8' },
      body: '<!DOCTYPE html><h1>Not Found</h1>',
    },
    { kind: 'unavailable' },
  ],
  [
    '409 JIT',
    {
      call: 'jit',
      status: 409,
      body: {
        message: 'Already exists - A runner with the name r-1 already exists.',
        documentation_url: DOCS,
      },
    },
    { kind: 'name_taken' },
  ],
  [
    '409 of another kind',
    { call: 'remove', status: 409, body: { message: 'Conflict' } },
    { kind: 'unavailable' },
  ],
  // others
  [
    '400',
    { call: 'jit', status: 400, body: { message: 'Problems parsing JSON' } },
    { kind: 'rejected' },
  ],
  ['410', { call: 'remove', status: 410, body: { message: 'Gone' } }, { kind: 'rejected' }],
  [
    '403 page of a firewall',
    {
      call: 'remove',
      status: 403,
      headers: { 'content-type': 'text/html' },
      body: '<html><body>Blocked by policy</body></html>',
    },
    { kind: 'unavailable' },
  ],
  [
    '422 page of a proxy',
    {
      call: 'remove',
      status: 422,
      headers: { 'content-type': 'text/html' },
      body: '<html>running a job</html>',
    },
    { kind: 'unavailable' },
  ],
  ['407', { status: 407, body: '' }, { kind: 'unavailable' }],
  ['500', { status: 500, body: '' }, { kind: 'unavailable' }],
  [
    '502 page',
    {
      call: 'remove',
      status: 502,
      headers: { 'content-type': 'text/html' },
      body: '<html><title>Unicorn!</title></html>',
    },
    { kind: 'unavailable' },
  ],
  [
    '503 with retry-after',
    { status: 503, headers: { 'retry-after': '20' }, body: { message: 'Service unavailable' } },
    { kind: 'unavailable', retryAfterMs: 20_000 },
  ],
  [
    '503 whose text mentions limits is still 503',
    { status: 503, body: { message: 'rate limit backend down' } },
    { kind: 'unavailable' },
  ],
];

describe('a response of GitHub is classified by call, status, headers and message', () => {
  test.each(rows)('%s', (_title, answer, expected) => {
    const result = classifyResponse({ call: 'list', headers: {}, ...answer }, NOW);
    expect({ retryAfterMs: undefined, ...result }).toMatchObject({
      retryAfterMs: undefined,
      ...expected,
    });
  });

  test('no variant of a rate limit is classified as forbidden or not found, for any call', () => {
    const calls: RestCall[] = [
      'jit',
      'registration_token',
      'installation_token',
      'runner',
      'remove',
      'list',
      'group',
    ];
    for (const call of calls) {
      for (const [title, answer, expected] of rows.filter(
        (row) => row[2].kind === 'rate_limited',
      )) {
        expect([title, call, classifyResponse({ headers: {}, ...answer, call }, NOW).kind]).toEqual(
          [title, call, expected.kind],
        );
      }
    }
  });
});

describe('a request without a response is unavailable, with the innermost reason', () => {
  const wrapped = (code: string, message: string): Error =>
    new Error('fetch failed', { cause: Object.assign(new Error(message), { code }) });
  test.each([
    [
      wrapped('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:1'),
      'connect ECONNREFUSED 127.0.0.1:1',
    ],
    [wrapped('ECONNRESET', 'read ECONNRESET'), 'read ECONNRESET'],
    [
      wrapped('ENOTFOUND', 'getaddrinfo ENOTFOUND api.example'),
      'getaddrinfo ENOTFOUND api.example',
    ],
    [wrapped('UND_ERR_SOCKET', 'other side closed'), 'other side closed (UND_ERR_SOCKET)'],
    [
      wrapped('UND_ERR_CONNECT_TIMEOUT', 'Connect Timeout Error'),
      'Connect Timeout Error (UND_ERR_CONNECT_TIMEOUT)',
    ],
    [
      new Error('x', {
        cause: new AggregateError([
          Object.assign(new Error('connect ECONNREFUSED ::1:1'), { code: 'ECONNREFUSED' }),
        ]),
      }),
      'connect ECONNREFUSED ::1:1',
    ],
    [
      new Error('x', {
        cause: new DOMException('The operation was aborted due to timeout', 'TimeoutError'),
      }),
      'no answer in time',
    ],
    ['a string', 'a string'],
  ])('%s', (error, reason) => {
    expect(classifyFailure(error)).toEqual({ kind: 'unavailable', reason });
  });

  test('TLS failures name the setting', () => {
    expect(
      classifyFailure(wrapped('DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate')).reason,
    ).toMatch(/DEPTH_ZERO_SELF_SIGNED_CERT.*caFile/);
  });

  test('a closed connection is distinguished from a refused one', () => {
    expect(isConnectionReset(wrapped('UND_ERR_SOCKET', 'other side closed'))).toBe(true);
    expect(isConnectionReset(wrapped('ECONNRESET', 'read ECONNRESET'))).toBe(true);
    expect(isConnectionReset(wrapped('ECONNREFUSED', 'connect ECONNREFUSED'))).toBe(false);
  });
});
