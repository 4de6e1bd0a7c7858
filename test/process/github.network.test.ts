import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiRequestMetrics } from '../../activities/ciServers/index.ts';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import { RecordedGitHub, runnerJson, type Step } from '../support/recordedGitHub.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const RUNNER = '/orgs/acme/actions/runners/5';
process.env['HOLDFAST_NETWORK_TOKEN'] = 'ghp_x';

let github: RecordedGitHub;
let observed: CiRequestMetrics[];
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  github = await new RecordedGitHub().start();
  observed = [];
});

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await github.stop();
});

function serverWith(settings: Record<string, unknown> = {}): CiServer {
  const credential = {
    type: 'pat',
    tokenEnv: 'HOLDFAST_NETWORK_TOKEN',
    apiUrl: github.url,
    ...settings,
  };
  const { server, close } = ciServerOf(credential, {
    onRequest: (request) => observed.push(request),
  });
  closing.push(close);
  return server;
}

test('no response in time', async () => {
  github.on(`GET ${RUNNER}`, 'hang');
  const error = await ciServerError(
    serverWith({ requestTimeoutSeconds: 0.3 }).findRunner(SCOPE, { id: '5', name: 'r' }),
  );
  expect(error).toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('no answer in time'),
  });
});

test('a read over a closed connection is retried', async () => {
  github.on(`GET ${RUNNER}`, 'reset', { status: 200, body: runnerJson(5, 'r') });
  expect((await serverWith().findRunner(SCOPE, { id: '5', name: 'r' }))?.id).toBe('5');
  expect(observed.map(({ status }) => status)).toEqual([undefined, 200]);
});

test('a read is not retried endlessly', async () => {
  github.on(`GET ${RUNNER}`, 'reset');
  expect(await ciServerError(serverWith().findRunner(SCOPE, { id: '5', name: 'r' }))).toMatchObject(
    {
      kind: 'unavailable',
    },
  );
  expect(github.requests).toHaveLength(2);
});

test('a write is not retried', async () => {
  github.on(`DELETE ${RUNNER}`, 'reset', { status: 204 });
  expect(await ciServerError(serverWith().removeRegistration(SCOPE, '5'))).toMatchObject({
    kind: 'unavailable',
  });
  expect(github.requests).toHaveLength(1);
});

test('connection refused', async () => {
  const server = serverWith();
  await github.stop();
  expect(await ciServerError(server.removeRegistration(SCOPE, '5'))).toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('ECONNREFUSED'),
  });
  expect(observed).toEqual([expect.objectContaining({ status: undefined })]);
});

test('a long response that is not read does not block others', async () => {
  github.on(`GET ${RUNNER}`, { status: 407, body: { message: 'x'.repeat(1_000_000) } });
  expect(await ciServerError(serverWith().findRunner(SCOPE, { id: '5', name: 'r' }))).toMatchObject(
    {
      kind: 'unavailable',
    },
  );
  for (const close of closing.splice(0)) await close();
});

test("an aborted request ends immediately with the signal's reason", async () => {
  const arrived = Promise.withResolvers<void>();
  github.on(`GET ${RUNNER}`, () => {
    arrived.resolve();
    return { status: 200, body: runnerJson(5, 'r'), after: new Promise(() => undefined) };
  });
  const abort = new AbortController();
  const found = serverWith({ requestTimeoutSeconds: 300 }).findRunner(
    SCOPE,
    { id: '5', name: 'r' },
    abort.signal,
  );
  await arrived.promise;
  abort.abort(new Error('worker shuts down'));
  await expect(found).rejects.toThrow('worker shuts down');
});

test('concurrent requests are limited, and all complete', async () => {
  let inFlight = 0;
  let most = 0;
  github.on(`GET ${RUNNER}`, () => {
    inFlight += 1;
    most = Math.max(most, inFlight);
    const after = new Promise<void>((resolve) => setImmediate(() => ((inFlight -= 1), resolve())));
    return { status: 200, body: runnerJson(5, 'r'), after };
  });
  const server = serverWith({ maxInFlight: 3 });
  const found = await Promise.all(
    Array.from({ length: 60 }, () => server.findRunner(SCOPE, { id: '5', name: 'r' })),
  );
  expect(found.every((runner) => runner?.id === '5')).toBe(true);
  expect(most).toBeLessThanOrEqual(3);
});

test.each<[what: string, step: Step]>([
  ['a bad gateway', { status: 502, body: { message: 'Bad Gateway' } }],
  ['connections that break', 'reset'],
  [
    'a maintenance page',
    { status: 503, headers: { 'content-type': 'text/html' }, body: '<html>Back soon</html>' },
  ],
  [
    'a page instead of an answer',
    { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Log in</html>' },
  ],
])(
  '%s: fifty calls cause few requests, and the first response releases all',
  async (_what, step) => {
    github.on(`DELETE ${RUNNER}`, step);
    const server = serverWith();
    for (let failures = 0; failures < 2; failures++)
      await ciServerError(server.removeRegistration(SCOPE, '5'));
    const startedAt = Date.now();
    const errors = await Promise.all(
      Array.from(
        { length: 50 },
        async () => await ciServerError(server.removeRegistration(SCOPE, '5')),
      ),
    );
    // The two, and probes: at once, after 1 s, and then every 2 s.
    expect(github.requests.length).toBeLessThanOrEqual(2 + 2 + (Date.now() - startedAt) / 1_000);
    expect(new Set(errors.map(({ kind, retryAfterMs }) => `${kind} ${retryAfterMs}`))).toEqual(
      new Set(['unavailable 1000']),
    );
    expect(
      errors.some(({ message }) =>
        /^credential "\w+": not sent to 127\.0\.0\.1:\d+: no answer since /.test(message),
      ),
    ).toBe(true);
    expect(server.isReachable?.()).toBe(false);

    github.on(`DELETE ${RUNNER}`, { status: 204 });
    // As the activity that it is a try of, it comes again.
    const remove = async (): Promise<string> => {
      try {
        return await server.removeRegistration(SCOPE, '5');
      } catch (error) {
        if (!(error instanceof CiServerError)) throw error;
        return await remove();
      }
    };
    const answers = await Promise.all(Array.from({ length: 50 }, remove));
    expect(new Set(answers)).toEqual(new Set(['removed']));
    expect(server.isReachable?.()).toBe(true);
  },
);
