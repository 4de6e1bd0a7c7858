import { describe, expect, test } from '@jest/globals';
import { ApiException } from '@kubernetes/client-node';
import { ApiError } from '../../activities/compute/kubernetes/apiServer.ts';
import {
  apiFailure,
  isNotFound,
  isResourceVersionExpired,
  isUidMismatch,
  toOutage,
  toComputeError,
} from '../../activities/compute/kubernetes/errors.ts';
import { ComputeError, type ComputeErrorKind } from '../../activities/ports/computeError.ts';

/** Bodies as a Kubernetes 1.34 API server sends them. */
const status = (code: number, reason: string, message: string, more: object = {}): string =>
  JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
    ...more,
  });

const ANSWERS: [string, number, string, ComputeErrorKind][] = [
  [
    'quota',
    403,
    status(
      403,
      'Forbidden',
      'pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2',
    ),
    'quota_exceeded',
  ],
  [
    'a quota without a status yet',
    403,
    status(403, 'Forbidden', 'pods "a" is forbidden: status unknown for quota: q, resources: pods'),
    'unavailable',
  ],
  [
    'RBAC',
    403,
    status(
      403,
      'Forbidden',
      'pods is forbidden: User "w" cannot create resource "pods" in API group "" in the namespace "ci"',
    ),
    'forbidden',
  ],
  [
    'RBAC on one object',
    403,
    status(
      403,
      'Forbidden',
      'secrets "a" is forbidden: User "w" cannot get resource "secrets" in API group "" in the namespace "ci"',
    ),
    'forbidden',
  ],
  [
    'Pod Security',
    403,
    status(
      403,
      'Forbidden',
      'pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
    ),
    'invalid',
  ],
  [
    'a missing service account',
    403,
    status(
      403,
      'Forbidden',
      'pods "a" is forbidden: error looking up service account ci/x: serviceaccount "x" not found',
    ),
    'invalid',
  ],
  [
    'a terminating namespace',
    403,
    status(
      403,
      'Forbidden',
      'pods "a" is forbidden: unable to create new content in namespace ci because it is being terminated',
    ),
    'invalid',
  ],
  [
    'an admission webhook',
    403,
    status(
      403,
      'Forbidden',
      'admission webhook "policy.example.com" denied the request: no privileged pods',
    ),
    'invalid',
  ],
  [
    'a webhook with its own status code',
    400,
    status(400, '', 'admission webhook "policy.example.com" denied the request: no'),
    'invalid',
  ],
  [
    'a webhook without a response',
    500,
    status(
      500,
      'InternalError',
      'Internal error occurred: failed calling webhook "x": context deadline exceeded',
    ),
    'unavailable',
  ],
  ['no credentials', 401, status(401, 'Unauthorized', 'Unauthorized'), 'forbidden'],
  [
    'an unknown field',
    400,
    status(400, 'BadRequest', 'strict decoding error: unknown field "spec.nodeSelectr"'),
    'invalid',
  ],
  [
    'an invalid pod',
    422,
    status(422, 'Invalid', 'Pod "a" is invalid: spec.containers[0].image: Required value'),
    'invalid',
  ],
  ['no such namespace', 404, status(404, 'NotFound', 'namespaces "ci" not found'), 'invalid'],
  [
    'two writers',
    409,
    status(
      409,
      'Conflict',
      'Operation cannot be fulfilled on resourcequotas "q": the object has been modified',
    ),
    'unavailable',
  ],
  ['exists', 409, status(409, 'AlreadyExists', 'pods "a" already exists'), 'invalid'],
  [
    'an expired list',
    410,
    status(410, 'Expired', 'The provided continue parameter is too old'),
    'unavailable',
  ],
  [
    'too many requests',
    429,
    status(429, 'TooManyRequests', 'too many requests, please try again later'),
    'unavailable',
  ],
  ["a proxy's page", 502, '<html><body>502 Bad Gateway</body></html>', 'unavailable'],
  ['an empty 503', 503, '', 'unavailable'],
  ['a login page', 302, '', 'unavailable'],
  ['a login page with status 200', 200, '<html>please log in</html>', 'unavailable'],
  ["a proxy's 404", 404, '<html>404 Not Found</html>', 'unavailable'],
  ['a path unknown to the server', 404, '404 page not found', 'unavailable'],
  [
    "a gateway's 404 in JSON",
    404,
    '{"code":404,"reason":"NotFound","message":"no route"}',
    'unavailable',
  ],
  ["a proxy's 409", 409, '<html>Conflict</html>', 'unavailable'],
  ["a proxy's 400", 400, '<html>Bad Request</html>', 'unavailable'],
  [
    "a proxy's 403 that quotes a quota",
    403,
    '<html>exceeded quota: 100 requests an hour</html>',
    'forbidden',
  ],
];

/** Only a response of the API server itself about exactly the requested object is proof. */
describe('what a response proves', () => {
  const page = '<html><body>404 Not Found</body></html>';
  const notFound = (name: string): string =>
    status(404, 'NotFound', `pods "${name}" not found`, { details: { name, kind: 'pods' } });

  test.each<[string, number, string, boolean]>([
    ['the API server has no pod of that name', 404, notFound('a'), true],
    ['the API server has no pod of another name', 404, notFound('b'), false],
    ['the API server has no such path', 404, '404 page not found', false],
    ["a proxy's page", 404, page, false],
    [
      'a proxy that responds with JSON',
      404,
      '{"code":404,"reason":"NotFound","message":"pods \\"a\\" not found","details":{"name":"a"}}',
      false,
    ],
    ['a proxy with an empty response', 404, '', false],
    ['410 of the API server', 410, status(410, 'Gone', 'gone', { details: { name: 'a' } }), false],
  ])('absence: %s', (_, code, body, expected) => {
    expect(isNotFound(new ApiError(code, body, {}), 'a')).toBe(expected);
  });

  test.each<[string, number, string, boolean]>([
    [
      'the API server',
      409,
      status(
        409,
        'Conflict',
        'Operation cannot be fulfilled on pods "a": the UID in the precondition (x) does not match the UID in record (y). The object might have been deleted and then recreated',
        { details: { name: 'a', kind: 'pods' } },
      ),
      true,
    ],
    [
      'another conflict',
      409,
      status(
        409,
        'Conflict',
        'Operation cannot be fulfilled on pods "a": the object has been modified',
      ),
      false,
    ],
    [
      "a proxy's page that quotes the request's uid",
      409,
      '<html>Conflict: the UID in the precondition</html>',
      false,
    ],
  ])('another UID: %s', (_, code, body, expected) => {
    expect(isUidMismatch(new ApiError(code, body, {}))).toBe(expected);
  });

  test.each<[string, number, string, boolean]>([
    [
      'an expired resource version',
      410,
      status(410, 'Expired', 'too old resource version: 1 (2)'),
      true,
    ],
    [
      'an expired resource version of an older server',
      410,
      status(410, 'Gone', 'too old resource version'),
      true,
    ],
    ["a proxy's page", 410, '<html>Gone</html>', false],
  ])('expired: %s', (_, code, body, expected) => {
    expect(isResourceVersionExpired(new ApiError(code, body, {}))).toBe(expected);
  });
});

describe('toComputeError', () => {
  test.each(ANSWERS)('%s', (_, code, body, kind) => {
    for (const error of [new ApiError(code, body, {}), new ApiException(code, 'x', body, {})]) {
      const converted = toComputeError(error, 'create pod ci/a');
      expect(converted).toBeInstanceOf(ComputeError);
      expect(converted).toMatchObject({
        kind,
        message: expect.stringContaining(`Cannot create pod ci/a: `),
        retryAfterMs: undefined,
      });
      expect(converted.message).toContain(`HTTP ${code}`);
      expect(converted.message).not.toContain('\n');
    }
  });

  test.each<[string, string, Record<string, string>, number | undefined]>([
    ['the header', status(429, 'TooManyRequests', 'later'), { 'retry-after': '3' }, 3000],
    [
      'the details',
      status(429, 'TooManyRequests', 'later', { details: { retryAfterSeconds: 2 } }),
      {},
      2000,
    ],
    [
      'a date, which Kubernetes never sends',
      '',
      { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' },
      undefined,
    ],
  ])('retry-after: %s', (_, body, headers, expected) => {
    expect(toComputeError(new ApiError(429, body, headers), 'x')).toMatchObject({
      kind: 'unavailable',
      retryAfterMs: expected,
    });
  });

  test.each<[string, Error, string]>([
    [
      'refused',
      Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' }),
      'ECONNREFUSED',
    ],
    [
      'undici',
      Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
      'UND_ERR_SOCKET',
    ],
    [
      'fetch',
      new TypeError('fetch failed', {
        cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
      }),
      'ECONNRESET',
    ],
    [
      'a certificate',
      Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' }),
      'CERT_HAS_EXPIRED',
    ],
    ['the time limit', new DOMException('no answer', 'TimeoutError'), 'no answer in time'],
  ])('network: %s', (_, error, expected) => {
    const converted = toComputeError(error, 'get pod a');
    expect(converted).toMatchObject({ kind: 'unavailable', cause: error });
    expect(converted.message).toContain(expected);
  });

  test.each([
    ['a TypeError', new TypeError("Cannot read properties of undefined (reading 'x')")],
    [
      "Node's complaint",
      Object.assign(new TypeError('The "data" argument'), { code: 'ERR_INVALID_ARG_TYPE' }),
    ],
    [
      "undici's complaint",
      Object.assign(new Error('invalid path'), { code: 'UND_ERR_INVALID_ARG' }),
    ],
  ])('a defect is not reported as an outage: %s', (_, defect) => {
    expect(toComputeError(defect, 'x')).toBe(defect);
  });

  test('a ComputeError is unchanged', () => {
    const known = new ComputeError('invalid', 'm');
    expect(toComputeError(known, 'x')).toBe(known);
  });

  test('a long message is cut', () => {
    expect(
      toComputeError(new ApiError(500, 'x'.repeat(10_000), {}), 'x').message.length,
    ).toBeLessThan(600);
  });
});

test('apiFailure is undefined for an error without a response', () => {
  expect(apiFailure(Object.assign(new Error('x'), { code: 'ECONNRESET' }))).toBeUndefined();
  expect(apiFailure('x')).toBeUndefined();
});

describe('outageOf', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6443'), {
    code: 'ECONNREFUSED',
  });
  test.each<[what: string, error: unknown, outage: string | undefined]>([
    [
      'a closed port',
      new TypeError('fetch failed', { cause: refused }),
      'ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:6443',
    ],
    [
      'no answer',
      new DOMException('no answer within 30000 ms', 'TimeoutError'),
      'no answer in time',
    ],
    ["a proxy's page", new ApiError(502, '<html>', {}), 'HTTP 502'],
    [
      'a starting server',
      new ApiError(503, status(503, 'ServiceUnavailable', 'not ready'), {}),
      'HTTP 503',
    ],
    ["a proxy's own fault", new ApiError(500, 'upstream failed', {}), 'HTTP 500'],
    [
      'a failing webhook',
      new ApiError(500, status(500, 'InternalError', 'failed calling webhook "x"'), {}),
      undefined,
    ],
    [
      'too many requests',
      new ApiError(429, status(429, 'TooManyRequests', 'later'), {}),
      undefined,
    ],
    [
      'no such pod',
      new ApiError(404, status(404, 'NotFound', 'pods "a" not found'), {}),
      undefined,
    ],
    ['a defect', new TypeError('x is not a function'), undefined],
  ])('%s', (_what, error, outage) => {
    expect(toOutage(error)).toBe(outage);
  });
});
