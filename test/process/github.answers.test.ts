import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import type { CiRequestMetrics } from '../../activities/ciServers/index.ts';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import { listJson, RecordedGitHub, runnerJson } from '../support/recordedGitHub.ts';
import type { RegisterRequest, Scope } from '../../core/domain/ciServer.ts';

const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const RUNNERS = '/api/v3/orgs/acme/actions/runners';
const JIT: RegisterRequest = {
  scope: SCOPE,
  name: 'r-1',
  labels: ['self-hosted', 'linux'],
  group: 'default',
  ephemeral: true,
  mode: 'jit',
};
const TOKEN: RegisterRequest = { ...JIT, ephemeral: false, mode: 'token' };
const SECRET = 'ghp_verysecret';
const NOT_FOUND = {
  status: 404,
  body: { message: 'Not Found', documentation_url: 'https://docs.github.com/rest', status: '404' },
};
const LIMIT = {
  status: 403,
  headers: { 'x-ratelimit-remaining': '4000', 'retry-after': '60' },
  body: {
    message:
      'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
  },
};

let github: RecordedGitHub;
let folder: string;
let tokenFile: string;
let server: CiServer;
let close: () => Promise<void>;
let observed: CiRequestMetrics[];
let log: string;

beforeEach(async () => {
  github = await new RecordedGitHub().start();
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, `${SECRET}\n`);
  observed = [];
  log = '';
  const logger = pino({ level: 'debug' }, { write: (line: string) => void (log += line) });
  const credential = { type: 'pat', tokenFile, apiUrl: `${github.url}/api/v3` };
  ({ server, close } = ciServerOf(credential, {
    logger,
    onRequest: (request) => observed.push(request),
  }));
});

afterEach(async () => {
  await close();
  await github.stop();
  rmSync(folder, { recursive: true });
});

describe('register', () => {
  const jitAnswer = {
    status: 201,
    body: { runner: runnerJson(42, 'r-1'), encoded_jit_config: 'c2VjcmV0LWppdA==' },
  };

  test('jit: the config is in the environment, the id is known', async () => {
    github.on(`POST ${RUNNERS}/generate-jitconfig`, jitAnswer);
    expect(await server.register(JIT)).toEqual({
      runnerName: 'r-1',
      runnerId: '42',
      env: {
        ACTIONS_RUNNER_INPUT_JITCONFIG: 'c2VjcmV0LWppdA==',
        ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: '1',
      },
    });
    expect(github.requests[0]).toMatchObject({
      body: {
        name: 'r-1',
        runner_group_id: 1,
        labels: ['self-hosted', 'linux'],
        work_folder: '_work',
      },
      headers: { authorization: `Bearer ${SECRET}`, 'x-github-api-version': '2022-11-28' },
    });
  });

  test.each([
    ['enterprise', { kind: 'enterprise', name: 'big' }, '/api/v3/enterprises/big/actions/runners'],
    [
      'repository',
      { kind: 'repository', name: 'acme/web' },
      '/api/v3/repos/acme/web/actions/runners',
    ],
  ] as const)('in a %s', async (_kind, scope, path) => {
    github.on(`POST ${path}/generate-jitconfig`, jitAnswer);
    expect((await server.register({ ...JIT, scope })).runnerId).toBe('42');
  });

  test('409: the name is in use', async () => {
    github.on(`POST ${RUNNERS}/generate-jitconfig`, {
      status: 409,
      body: { message: 'Already exists - A runner with the name r-1 already exists.' },
    });
    expect(await ciServerError(server.register(JIT))).toMatchObject({
      kind: 'name_taken',
      status: 409,
    });
  });

  test('404 although the scope can be listed: the group is invalid', async () => {
    github.on(`POST ${RUNNERS}/generate-jitconfig`, NOT_FOUND).on(`GET ${RUNNERS}`, listJson());
    const error = await ciServerError(server.register({ ...JIT, group: { id: '7' } }));
    expect(error).toMatchObject({ kind: 'rejected', status: 404 });
    expect(error.message).toMatch(/runner group 7 .*runnerGroupId/);
  });

  test('404 while the credential had no access to the scope, which a check shows again: retried', async () => {
    github
      .on(`DELETE ${RUNNERS}/5`, NOT_FOUND, { status: 204 })
      .on(`POST ${RUNNERS}/generate-jitconfig`, NOT_FOUND, jitAnswer)
      .on(`GET ${RUNNERS}`, listJson());
    expect([
      await server.removeRegistration(SCOPE, '5'),
      (await server.register(JIT)).runnerId,
    ]).toEqual(['removed', '42']);
  });

  test('404 and the scope cannot be listed: the credential is the cause', async () => {
    github.on(`POST ${RUNNERS}/generate-jitconfig`, NOT_FOUND).on(`GET ${RUNNERS}`, NOT_FOUND);
    expect(await ciServerError(server.register(JIT))).toMatchObject({
      kind: 'credentials',
      status: 404,
    });
  });

  test('a just-in-time runner cannot be static', async () => {
    expect(await ciServerError(server.register({ ...JIT, ephemeral: false }))).toMatchObject({
      kind: 'rejected',
    });
    expect(github.requests).toHaveLength(0);
  });

  test('token: one request for many runners at once, reused until less than 30 minutes remain', async () => {
    let now = Date.now();
    const issue = (token: string) => ({
      status: 201,
      body: { token, expires_at: new Date(now + 3_600_000).toISOString() },
    });
    github.on(`POST ${RUNNERS}/registration-token`, issue('AAA'), () => issue('BBB'));
    const { close: closeOther, server: timed } = ciServerOf(
      { type: 'pat', tokenFile, apiUrl: `${github.url}/api/v3`, webUrl: 'https://ghe.example' },
      {
        clock: {
          now: () => now,
          elapsed: () => now,
          sleep: () => Promise.reject(new Error('no sleep expected')),
        },
      },
    );
    try {
      const registrations = await Promise.all(
        Array.from({ length: 20 }, (_, i) => timed.register({ ...TOKEN, name: `r-${i}` })),
      );
      expect(github.requests).toHaveLength(1);
      expect(registrations[3]).toEqual({
        runnerName: 'r-3',
        env: {
          ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE: '1',
          RUNNER_TOKEN: 'AAA',
          RUNNER_URL: 'https://ghe.example/acme',
          RUNNER_SCOPE: 'orgs/acme',
          RUNNER_NAME: 'r-3',
          RUNNER_LABELS: 'self-hosted,linux',
          RUNNER_EPHEMERAL: 'false',
        },
      });
      expect(
        (await timed.register({ ...TOKEN, disableUpdate: true })).env['RUNNER_DISABLE_UPDATE'],
      ).toBe('true');
      now += 29 * 60_000;
      expect((await timed.register(TOKEN)).env['RUNNER_TOKEN']).toBe('AAA');
      now += 2 * 60_000;
      expect((await timed.register(TOKEN)).env['RUNNER_TOKEN']).toBe('BBB');
    } finally {
      await closeOther();
    }
  });

  test('token: an aborted caller does not take the token from the others', async () => {
    const gate = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    github.on(`POST ${RUNNERS}/registration-token`, () => {
      arrived.resolve();
      return {
        status: 201,
        body: { token: 'AAA', expires_at: '2099-01-01T00:00:00Z' },
        after: gate.promise,
      };
    });
    const abort = new AbortController();
    const first = server.register(TOKEN, abort.signal);
    const second = server.register(TOKEN);
    await arrived.promise;
    abort.abort(new Error('cancelled'));
    await expect(first).rejects.toThrow('cancelled');
    gate.resolve();
    expect((await second).env['RUNNER_TOKEN']).toBe('AAA');
  });
});

describe('find', () => {
  test('by name: one request, exact match', async () => {
    github.on(
      `GET ${RUNNERS}`,
      listJson(runnerJson(1, 'r-10'), runnerJson(2, 'r-1', { status: 'offline', busy: true })),
    );
    expect(await server.findRunner(SCOPE, { name: 'r-1' })).toEqual({
      id: '2',
      name: 'r-1',
      online: false,
      busy: true,
      labels: ['self-hosted'],
    });
    expect(github.seen).toEqual([`GET ${RUNNERS}?name=r-1&per_page=100`]);
  });

  test('by name: all pages of a server that does not filter are read', async () => {
    const all = Array.from({ length: 150 }, (_, i) => runnerJson(i, `r-${i}`));
    github.on(`GET ${RUNNERS}`, ({ url }) => ({
      status: 200,
      body: {
        total_count: 150,
        runners: url.includes('&page=2') ? all.slice(100) : all.slice(0, 100),
      },
    }));
    expect((await server.findRunner(SCOPE, { name: 'r-149' }))?.id).toBe('149');
    expect(await server.findRunner(SCOPE, { name: 'r-150' })).toBeUndefined();
  });

  test('by id', async () => {
    github.on(`GET ${RUNNERS}/5`, { status: 200, body: runnerJson(5, 'r-5') });
    expect((await server.findRunner(SCOPE, { id: '5', name: 'r-5' }))?.online).toBe(true);
  });

  test('an ID that is not a number is not requested, because a 404 would look like a proof of absence', async () => {
    for (const id of ['x', '0', '1e3', '../5'])
      expect([
        (await ciServerError(server.findRunner(SCOPE, { id, name: 'r' }))).kind,
        (await ciServerError(server.removeRegistration(SCOPE, id))).kind,
      ]).toEqual(['rejected', 'rejected']);
    expect(github.requests).toEqual([]);
  });

  test('by id: a 404 is a proof only if the scope can be listed', async () => {
    github.on(`GET ${RUNNERS}/5`, NOT_FOUND).on(`GET ${RUNNERS}`, listJson(), NOT_FOUND);
    expect(await server.findRunner(SCOPE, { id: '5', name: 'r-5' })).toBeUndefined();
    expect(await ciServerError(server.findRunner(SCOPE, { id: '5', name: 'r-5' }))).toMatchObject({
      kind: 'credentials',
    });
  });

  test('a login page with status 200 is not an empty list', async () => {
    github.on(`GET ${RUNNERS}`, {
      status: 200,
      headers: { 'content-type': 'text/html' },
      body: '<html>Sign in</html>',
    });
    expect(await ciServerError(server.findRunner(SCOPE, { name: 'r-1' }))).toMatchObject({
      kind: 'unavailable',
    });
  });
});

describe('remove', () => {
  const DELETE = `DELETE ${RUNNERS}/5`;

  test('204', async () => {
    github.on(DELETE, { status: 204 });
    expect(await server.removeRegistration(SCOPE, '5')).toBe('removed');
    expect(github.requests).toHaveLength(1);
  });

  test('404 while the scope can be listed: absent', async () => {
    github.on(DELETE, NOT_FOUND).on(`GET ${RUNNERS}`, listJson(runnerJson(1, 'x')));
    expect(await server.removeRegistration(SCOPE, '5')).toBe('absent');
    expect(github.seen[1]).toBe(`GET ${RUNNERS}?per_page=1`);
  });

  test.each([
    ['404', NOT_FOUND, 'credentials'],
    ['401', { status: 401, body: { message: 'Bad credentials' } }, 'credentials'],
    [
      '403',
      { status: 403, body: { message: 'Resource not accessible by integration' } },
      'credentials',
    ],
    ['a secondary limit', LIMIT, 'rate_limited'],
    ['502', { status: 502, body: 'Bad Gateway' }, 'unavailable'],
    [
      'a login page',
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Sign in</html>' },
      'unavailable',
    ],
    ['a cut connection', 'reset', 'unavailable'],
  ] as const)('404, and the proof is answered with %s: not absent', async (_title, proof, kind) => {
    github.on(DELETE, NOT_FOUND).on(`GET ${RUNNERS}`, proof);
    expect(await ciServerError(server.removeRegistration(SCOPE, '5'))).toMatchObject({ kind });
  });

  test.each([
    ['Bad request - Runner "r-1" is still running a job"', 'busy'],
    ['Runner "r-1" is currently running a job and cannot be deleted', 'busy'],
    ['Validation Failed', 'rejected'],
  ])('422 %s', async (message, kind) => {
    github.on(DELETE, {
      status: 422,
      body: { message, documentation_url: 'https://docs.github.com/rest' },
    });
    expect(await ciServerError(server.removeRegistration(SCOPE, '5'))).toMatchObject({
      kind,
      status: 422,
      message: expect.stringContaining('organization acme'),
    });
  });

  test('a page with status 200 does not mean that it was removed', async () => {
    github.on(DELETE, {
      status: 200,
      headers: { 'content-type': 'text/html' },
      body: '<html>Sign in</html>',
    });
    expect(await ciServerError(server.removeRegistration(SCOPE, '5'))).toMatchObject({
      kind: 'unavailable',
    });
  });
});

describe('limits', () => {
  test('after a rate limit for one runner, the other runners do not send requests', async () => {
    github.on(`DELETE ${RUNNERS}/5`, LIMIT);
    const error = await ciServerError(server.removeRegistration(SCOPE, '5'));
    expect(error).toMatchObject({ kind: 'rate_limited', status: 403 });
    const others = await Promise.all(
      [1, 2, 3, 4].map((id) => ciServerError(server.removeRegistration(SCOPE, String(id)))),
    );
    for (const { kind, retryAfterMs } of [error, ...others]) {
      expect(kind).toBe('rate_limited');
      expect(retryAfterMs).toBeGreaterThan(50_000);
      expect(retryAfterMs).toBeLessThan(67_000);
    }
    expect(github.requests).toHaveLength(1);
  });
});

describe('credentials', () => {
  test('401 with the same token in the file: no second request', async () => {
    github.on(`DELETE ${RUNNERS}/5`, { status: 401, body: { message: 'Bad credentials' } });
    const error = await ciServerError(server.removeRegistration(SCOPE, '5'));
    expect(error).toMatchObject({ kind: 'credentials', status: 401 });
    expect(error.message).toContain('credential "default"');
    expect(github.requests).toHaveLength(1);
  });

  test('401 during a rotation of the token: retried with the new one', async () => {
    github.on(`DELETE ${RUNNERS}/5`, ({ headers }) => {
      writeFileSync(tokenFile, 'ghp_new');
      return headers['authorization'] === 'Bearer ghp_new'
        ? { status: 204 }
        : { status: 401, body: { message: 'Bad credentials' } };
    });
    expect(await server.removeRegistration(SCOPE, '5')).toBe('removed');
    expect(github.requests).toHaveLength(2);
  });

  test('no token file', async () => {
    rmSync(tokenFile);
    expect(await ciServerError(server.removeRegistration(SCOPE, '5'))).toMatchObject({
      kind: 'credentials',
      message: expect.stringContaining(tokenFile),
    });
  });
});

test('requests are measured and logged by route, without secrets', async () => {
  github.on(`POST ${RUNNERS}/generate-jitconfig`, {
    status: 201,
    headers: { 'x-ratelimit-remaining': '4711' },
    body: { runner: runnerJson(42, 'r-1'), encoded_jit_config: 'secret-jit' },
  });
  github.on(`POST ${RUNNERS}/registration-token`, {
    status: 201,
    body: { token: 'secret-registration', expires_at: '2099-01-01T00:00:00Z' },
  });
  await server.register(JIT);
  await server.register(TOKEN);
  expect(observed[0]).toEqual({
    credential: 'default',
    route: 'POST /orgs/{org}/actions/runners/generate-jitconfig',
    status: 201,
    ms: expect.any(Number),
    rateLimitRemaining: 4711,
  });
  expect(log.trim().split('\n')).toHaveLength(2);
  expect(log).toContain('generate-jitconfig');
  expect(log).not.toMatch(/secret/);
});
