import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { createCiServers, parseCredentials } from '../../../activities/ciServers/index.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import type { CiServer } from '../../../activities/ports/ciServer.ts';
import type { RegisterRequest, Scope } from '../../../core/domain/ciServer.ts';
import { assertReadableMessage } from '../readableMessage.ts';
import { mutatedJson, mutatedText } from '../mutations.ts';
import { target } from '../target.ts';

const TIME = '2026-03-01T12:00:00Z';
const RUNNER = {
  id: 7,
  name: 'r-1',
  os: 'linux',
  status: 'online',
  busy: false,
  labels: [{ id: 1, name: 'linux', type: 'custom' }],
};
const BODIES: readonly unknown[] = [
  { runner: RUNNER, encoded_jit_config: 'c2VjcmV0' },
  { token: 'AAA', expires_at: '2099-01-01T00:00:00Z' },
  RUNNER,
  { total_count: 1, runners: [RUNNER] },
  { total_count: 250, runners: [RUNNER] },
  { id: 3, name: 'big ones' },
  [{ full_name: 'acme/app', archived: false, disabled: null, pushed_at: TIME }],
  {
    total_count: 1,
    repository_selection: 'all',
    repositories: [{ full_name: 'acme/app', pushed_at: TIME }],
  },
  { total_count: 1, workflow_runs: [{ id: 11 }] },
  {
    total_count: 1,
    jobs: [
      {
        id: 12,
        run_attempt: 1,
        status: 'queued',
        labels: ['linux'],
        created_at: TIME,
        started_at: TIME,
        runner_name: null,
      },
    ],
  },
  [{ id: 13, guid: '72d3162e', delivered_at: TIME, status_code: 502, event: 'workflow_job' }],
  { message: 'Not Found', documentation_url: 'https://docs.github.com/rest', status: '404' },
  {
    message: 'Bad request - Runner "r-1" is still running a job"',
    errors: [{ resource: 'Runner', code: 'invalid' }],
  },
  { message: 'You have exceeded a secondary rate limit.' },
];
const ETAG = '"abc"';

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const headerValue = (...examples: string[]) =>
  mutatedText(examples).map((text) =>
    text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '').slice(0, 4_000),
  );
const answer: fc.Arbitrary<Answer> = fc.record({
  status: fc.oneof(
    { arbitrary: fc.constantFrom(200, 201), weight: 4 },
    {
      arbitrary: fc.constantFrom(
        204,
        301,
        302,
        304,
        401,
        403,
        404,
        407,
        408,
        409,
        422,
        429,
        500,
        502,
        503,
        599,
      ),
      weight: 2,
    },
  ),
  headers: fc.record(
    {
      'content-type': headerValue(
        'application/json; charset=utf-8',
        'text/html',
        'application/octet-stream',
      ),
      'retry-after': headerValue('60', 'Wed, 21 Oct 2026 07:28:00 GMT'),
      'x-ratelimit-remaining': headerValue('0', '4999'),
      'x-ratelimit-reset': headerValue('1772366400'),
      date: headerValue('Sun, 01 Mar 2026 12:00:00 GMT'),
      link: headerValue('<https://api.github.com/app/hook/deliveries?cursor=v1_1>; rel="next"'),
      etag: headerValue(ETAG),
      location: headerValue('/elsewhere', 'http://127.0.0.1:1/'),
    },
    { requiredKeys: [] },
  ),
  body: fc.oneof(
    { arbitrary: mutatedJson(BODIES).map((value) => JSON.stringify(value) ?? ''), weight: 4 },
    {
      arbitrary: mutatedText(
        BODIES.map((body) => JSON.stringify(body)),
        ['<html>', '"', '{', '[', '\\u0000', '\uFEFF'],
      ),
      weight: 1,
    },
  ),
});

const SCOPES: readonly Scope[] = [
  { kind: 'organization', name: 'acme' },
  { kind: 'repository', name: 'acme/app' },
  { kind: 'enterprise', name: 'big' },
];
const register = (scope: Scope, mode: RegisterRequest['mode']): RegisterRequest => ({
  scope,
  name: 'r-1',
  labels: ['linux'],
  group: { id: '3' },
  ephemeral: mode === 'jit',
  mode,
});

/** All operations of a CI server that Holdfast uses. */
const CALLS: Readonly<Record<string, (server: CiServer, scope: Scope) => Promise<unknown>>> = {
  jit: (server, scope) => server.register(register(scope, 'jit')),
  token: (server, scope) => server.register(register(scope, 'token')),
  findById: (server, scope) => server.findRunner(scope, { id: '7', name: 'r-1' }),
  findByName: (server, scope) => server.findRunner(scope, { name: 'r-1' }),
  remove: (server, scope) => server.removeRegistration(scope, '7'),
  list: (server, scope) => server.listRunners(scope),
  queuedJobs: async (server, scope) => await server.listQueuedJobs?.(scope, ['linux']),
  redeliver: async (server) => await server.redeliverFailed?.({ maxRedeliveries: 3 }),
};

export const gitHub = target(
  'github',
  'answers of the CI server, over HTTP, to each of our calls: statuses, headers, bodies',
  async () => {
    let answers: Answer[] = [];
    let asked = 0;
    const web = createServer((request, reply) => {
      request.resume();
      // Repeated requests end because the server becomes unreachable.
      const { status, headers, body } = answers[asked++ % Math.max(1, answers.length)] ?? AWAY;
      if (asked > 30) return void reply.writeHead(500).end();
      reply.writeHead(status, headers).end([204, 304].includes(status) ? undefined : body);
    });
    const apiUrl = `http://127.0.0.1:${await listening(web)}`;
    const [tokenEnv, privateKeyEnv] = ['HOLDFAST_FUZZ_TOKEN', 'HOLDFAST_FUZZ_KEY'];
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    Object.assign(process.env, { [tokenEnv]: 'ghp_x', [privateKeyEnv]: privateKey });
    const credentials = parseCredentials({
      pat: { type: 'pat', tokenEnv, apiUrl },
      app: { type: 'app', appId: 1, installationId: 1, privateKeyEnv, apiUrl },
    });
    // The clock jumps ahead, so that every wait ends at once, days later.
    let now = Date.parse(TIME);
    const clock = {
      now: () => now,
      elapsed: () => now,
      sleep: async (ms: number) => void (now += ms),
    };
    return {
      inputs: fc.record({
        call: fc.constantFrom(...Object.keys(CALLS)),
        scope: fc.constantFrom(...SCOPES),
        isApp: fc.boolean(),
        answers: fc.array(answer, { minLength: 1, maxLength: 4 }),
      }),
      async run({ call, scope, isApp, answers: given }) {
        [answers, asked, now] = [given, 0, Date.parse(TIME)];
        const servers = createCiServers(credentials, { clock });
        try {
          await CALLS[call]?.(servers.get(isApp ? 'app' : 'pat'), scope);
        } catch (error) {
          if (!(error instanceof CiServerError)) throw error;
          assertReadableMessage(error.message, call);
          if (
            error.retryAfterMs !== undefined &&
            !(error.retryAfterMs >= 0 && error.retryAfterMs <= 2 * 86_400_000)
          )
            throw new Error(`to be asked again after ${error.retryAfterMs} ms`, { cause: error });
        } finally {
          await servers.close();
        }
      },
      async close() {
        for (const name of [tokenEnv, privateKeyEnv]) delete process.env[name];
        web.closeAllConnections();
        await new Promise((resolve) => web.close(resolve));
      },
    };
  },
);

const AWAY: Answer = { status: 500, headers: {}, body: '' };

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
