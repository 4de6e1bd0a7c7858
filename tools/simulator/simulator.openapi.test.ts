import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createSign, generateKeyPairSync } from 'node:crypto';
import type { Fault } from './faults.ts';
import { startSimulator, type Simulator } from './simulator.ts';
import { GitHubDescription } from '../../test/support/gitHubDescription.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

function appToken(claims: Record<string, unknown> = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ iss: '7', iat: now - 30, exp: now + 540, ...claims })}`;
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(privateKey, 'base64url')}`;
}

let simulator: Simulator;
let gitHub: GitHubDescription;
let gitHubEnterprise: GitHubDescription;

beforeAll(async () => {
  gitHub = new GitHubDescription('api.github.com');
  gitHubEnterprise = new GitHubDescription('ghec');
  simulator = await startSimulator({
    tokens: [
      { token: 'pat', name: 'owner' },
      { token: 'reader', permission: 'read' },
      { token: 'stranger', scopes: ['orgs/other'] },
    ],
    apps: [{ id: 7, publicKey, installations: [{ id: 70, account: 'acme' }] }],
    groups: [
      { id: 2, name: 'restricted', scope: 'orgs/acme', jitStatus: 403 },
      { id: 3, name: 'hidden', scope: 'orgs/acme', jitStatus: 404 },
    ],
  });
});
afterAll(() => simulator.stop());
beforeEach(() => simulator.clearFaults());

interface Ask {
  token?: string;
  body?: unknown;
  prefix?: string;
}

/** Asks, and checks the answer against GitHub's description of the endpoint. */
async function ask(
  method: string,
  template: string,
  path: string,
  status: number,
  { token = 'pat', body, prefix = '' }: Ask = {},
): Promise<{ body: any; headers: Headers }> {
  const response = await fetch(`${simulator.url}${prefix}${path}`, {
    method,
    headers: {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const answer: unknown = text === '' ? undefined : JSON.parse(text);
  expect({ asked: `${method} ${path}`, status: response.status, text }).toMatchObject({ status });
  const description = template.startsWith('/enterprises') ? gitHubEnterprise : gitHub;
  expect(description.problems(method, template, status, answer)).toEqual([]);
  for (const header of ['limit', 'remaining', 'used', 'reset', 'resource'])
    expect(response.headers.get(`x-ratelimit-${header}`)).toMatch(/\w/);
  return { body: answer, headers: response.headers };
}

let names = 0;
const jit = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  name: `openapi-${++names}`,
  runner_group_id: 1,
  labels: ['self-hosted', 'x64'],
  ...more,
});

describe.each([
  ['/orgs/{org}', '/orgs/acme'],
  ['/repos/{owner}/{repo}', '/repos/acme/widgets'],
  ['/enterprises/{enterprise}', '/enterprises/big'],
])('%s', (prefix, at) => {
  const template = `${prefix}/actions/runners`;
  const runners = `${at}/actions/runners`;

  test.each(['', '/api/v3'])(
    'registers, lists, gets and deletes a runner under "%s"',
    async (api) => {
      const request = jit();
      const made = await ask(
        'POST',
        `${template}/generate-jitconfig`,
        `${runners}/generate-jitconfig`,
        201,
        { body: request, prefix: api },
      );
      const { id } = made.body.runner;
      const listed = await ask(
        'GET',
        template,
        `${runners}?name=${String(request['name'])}&per_page=100`,
        200,
        { prefix: api },
      );
      expect(listed.body).toMatchObject({
        total_count: 1,
        runners: [{ id, name: request['name'], status: 'offline', busy: false }],
      });
      await ask('GET', `${template}/{runner_id}`, `${runners}/${id}`, 200, { prefix: api });
      await ask('DELETE', `${template}/{runner_id}`, `${runners}/${id}`, 204, { prefix: api });
      await ask('GET', `${template}/{runner_id}`, `${runners}/${id}`, 404, { prefix: api });
      await ask('DELETE', `${template}/{runner_id}`, `${runners}/${id}`, 404, { prefix: api });
    },
  );

  test('gives tokens', async () => {
    for (const kind of ['registration', 'remove'])
      await ask('POST', `${template}/${kind}-token`, `${runners}/${kind}-token`, 201);
  });

  test('refuses a name that is taken with 409, and bad requests with 422', async () => {
    const request = jit();
    const path = `${runners}/generate-jitconfig`;
    await ask('POST', `${template}/generate-jitconfig`, path, 201, { body: request });
    const taken = await ask('POST', `${template}/generate-jitconfig`, path, 409, { body: request });
    expect(taken.body.message).toBe(
      `Already exists - A runner with the name ${String(request['name'])} already exists.`,
    );
    const { runner_group_id: _group, ...withoutGroup } = jit();
    const bad = [
      withoutGroup,
      jit({ labels: [] }),
      jit({ labels: Array.from({ length: 101 }, (_, index) => `l${index}`) }),
      jit({ name: '' }),
      jit({ name: 'x'.repeat(65) }),
      jit({ runner_group_id: '1' }),
    ];
    for (const body of bad)
      await ask('POST', `${template}/generate-jitconfig`, path, 422, { body });
    await ask('POST', `${template}/generate-jitconfig`, path, 404, {
      body: jit({ runner_group_id: 99 }),
    });
  });

  test('pages with a Link header', async () => {
    for (let made = 0; made < 3; made++)
      await ask('POST', `${template}/generate-jitconfig`, `${runners}/generate-jitconfig`, 201, {
        body: jit(),
      });
    const seen = new Set<number>();
    let total = 0;
    for (let next: string | undefined = `${runners}?per_page=2`; next;) {
      const page: { body: any; headers: Headers } = await ask('GET', template, next, 200);
      expect(page.body.runners.length).toBeLessThanOrEqual(2);
      for (const runner of page.body.runners) seen.add(runner.id);
      total = page.body.total_count;
      const url: string | undefined = /<([^>]+)>; rel="next"/.exec(
        page.headers.get('link') ?? '',
      )?.[1];
      next = url?.slice(simulator.url.length);
    }
    expect(total).toBeGreaterThanOrEqual(3);
    expect(seen.size).toBe(total);
  });

  test('answers 401, 403 and 404 by what the credential is', async () => {
    await ask('GET', template, runners, 401, { token: '' });
    expect((await ask('GET', template, runners, 401, { token: 'unknown' })).body.message).toBe(
      'Bad credentials',
    );
    await ask('GET', template, runners, 200, { token: 'reader' });
    await ask('POST', `${template}/registration-token`, `${runners}/registration-token`, 403, {
      token: 'reader',
    });
    await ask('GET', template, runners, 404, { token: 'stranger' });
    await ask('DELETE', `${template}/{runner_id}`, `${runners}/1`, 404, { token: 'stranger' });
  });
});

test('runner groups: listed for organizations and enterprises; unusable ones answer 403 or 404', async () => {
  const { body } = await ask(
    'GET',
    '/orgs/{org}/actions/runner-groups',
    '/orgs/acme/actions/runner-groups',
    200,
  );
  expect(body.runner_groups.map((group: { name: string }) => group.name)).toEqual([
    'Default',
    'restricted',
    'hidden',
  ]);
  await ask(
    'GET',
    '/enterprises/{enterprise}/actions/runner-groups',
    '/enterprises/big/actions/runner-groups',
    200,
  );
  const path = '/orgs/acme/actions/runners/generate-jitconfig';
  await ask('POST', '/orgs/{org}/actions/runners/generate-jitconfig', path, 403, {
    body: jit({ runner_group_id: 2 }),
  });
  await ask('POST', '/orgs/{org}/actions/runners/generate-jitconfig', path, 404, {
    body: jit({ runner_group_id: 3 }),
  });
});

test('jobs and runs', async () => {
  const job = simulator.queueJob({ repo: 'acme/widgets', labels: ['nobody-has-this'] });
  const at = '/repos/acme/widgets/actions';
  const template = '/repos/{owner}/{repo}/actions';
  await ask('GET', `${template}/jobs/{job_id}`, `${at}/jobs/${job.id}`, 200);
  await ask('GET', `${template}/jobs/{job_id}`, `${at}/jobs/1`, 404);
  const { body } = await ask('GET', `${template}/runs`, `${at}/runs?status=queued`, 200);
  expect(body.workflow_runs.map((run: { id: number }) => run.id)).toContain(job.run_id);
  await ask('GET', `${template}/runs/{run_id}/jobs`, `${at}/runs/${job.run_id}/jobs`, 200);
  const again = simulator.queueJob({
    repo: 'acme/widgets',
    labels: ['nobody-has-this'],
    run_id: job.run_id,
    run_attempt: 2,
  });
  for (const [filter, ids] of [
    ['latest', [again.id]],
    ['all', [job.id, again.id]],
  ] as const) {
    const jobs = await ask(
      'GET',
      `${template}/runs/{run_id}/jobs`,
      `${at}/runs/${job.run_id}/jobs?filter=${filter}`,
      200,
    );
    expect(jobs.body.jobs.map(({ id }: { id: number }) => id)).toEqual(ids);
  }
  simulator.cancelJob(again.id);
  const repositories = await ask('GET', '/orgs/{org}/repos', '/orgs/acme/repos?sort=pushed', 200);
  expect(
    repositories.body.map((repository: { full_name: string }) => repository.full_name),
  ).toEqual(['acme/widgets']);
  simulator.cancelJob(job.id);
  const cancelled = await ask('GET', `${template}/jobs/{job_id}`, `${at}/jobs/${job.id}`, 200);
  expect(cancelled.body).toMatchObject({
    status: 'completed',
    conclusion: 'cancelled',
    runner_id: null,
  });
});

test('reruns of a job', async () => {
  const job = simulator.queueJob({ repo: 'acme/widgets', labels: ['nobody-has-this'] });
  const at = '/repos/acme/widgets';
  const template = '/repos/{owner}/{repo}';
  const rerun = `${template}/actions/jobs/{job_id}/rerun`;
  await ask('POST', rerun, `${at}/actions/jobs/${job.id}/rerun`, 403);
  simulator.cancelJob(job.id);
  const annotations = `${template}/check-runs/{check_run_id}/annotations`;
  await ask('GET', annotations, `${at}/check-runs/${job.id}/annotations`, 200);
  await ask('POST', rerun, `${at}/actions/jobs/${job.id}/rerun`, 201);
  const runAt = `${at}/actions/runs/${job.run_id}`;
  const { body } = await ask('GET', `${template}/actions/runs/{run_id}`, runAt, 200);
  expect(body).toMatchObject({ run_attempt: 2, status: 'queued' });
  await ask('GET', `${template}/actions/runs/{run_id}`, `${at}/actions/runs/1`, 404);
  for (const { id, status } of simulator.jobs()) if (status === 'queued') simulator.cancelJob(id);
});

test('force-cancel of a run, and who asked for it', async () => {
  const job = simulator.queueJob({ repo: 'acme/widgets', labels: ['nobody-has-this'] });
  const at = `/repos/acme/widgets/actions/runs/${job.run_id}/force-cancel`;
  const template = '/repos/{owner}/{repo}/actions/runs/{run_id}/force-cancel';
  await ask('POST', template, at, 202);
  const { body } = await ask('GET', '/user', '/user', 200);
  expect(simulator.job(job.id)).toMatchObject({
    status: 'completed',
    conclusion: 'cancelled',
    annotation: `The run was canceled by @${body.login}.`,
  });
  await ask('POST', template, at, 409);
  await ask('POST', template, at.replace(String(job.run_id), '1'), 404);
});

test('rate_limit is free of the primary limit', async () => {
  const before = await ask('GET', '/rate_limit', '/rate_limit', 200);
  const after = await ask('GET', '/rate_limit', '/rate_limit', 200);
  expect(after.body.resources.core).toEqual(before.body.resources.core);
  await ask('GET', '/rate_limit', '/rate_limit', 200, { token: '' });
});

test.each<[string, Fault, number]>([
  ['secondary limit', { kind: 'secondary_limit' }, 403],
  [
    'secondary limit as 429, older forms',
    { kind: 'secondary_limit', status: 429, form: 'abuse', retryAfterS: 5 },
    429,
  ],
  ['primary limit', { kind: 'primary_limit' }, 403],
  ['primary limit as 429', { kind: 'primary_limit', status: 429 }, 429],
  ['server error', { kind: 'status', status: 502 }, 502],
])('fault: %s', async (_name, fault, status) => {
  simulator.addFault(fault);
  await ask('GET', '/orgs/{org}/actions/runners', '/orgs/acme/actions/runners', status);
});

describe('GitHub App', () => {
  const ok = (
    method: string,
    template: string,
    path: string,
    status: number,
  ): ReturnType<typeof ask> => ask(method, template, path, status, { token: appToken() });

  test('looks at itself and its installations', async () => {
    await ok('GET', '/app', '/app', 200);
    // The description of the list says that an account is a user *and* an enterprise (allOf), where it says "or" everywhere else: each
    // item is checked as the single installation.
    const list = await fetch(`${simulator.url}/app/installations`, {
      headers: { authorization: `Bearer ${appToken()}` },
    });
    const installations = (await list.json()) as { id: number }[];
    expect(installations.map(({ id }) => id)).toEqual([70]);
    for (const one of installations)
      expect(gitHub.problems('GET', '/app/installations/{installation_id}', 200, one)).toEqual([]);
    await ok('GET', '/app/installations/{installation_id}', '/app/installations/70', 200);
    await ok('GET', '/orgs/{org}/installation', '/orgs/acme/installation', 200);
    await ok('GET', '/repos/{owner}/{repo}/installation', '/repos/acme/widgets/installation', 200);
    await ok('GET', '/users/{username}/installation', '/users/acme/installation', 200);
    await ok('GET', '/orgs/{org}/installation', '/orgs/nobody/installation', 404);
  });

  test('gets a token, which reaches its account but no enterprise', async () => {
    const { body } = await ok(
      'POST',
      '/app/installations/{installation_id}/access_tokens',
      '/app/installations/70/access_tokens',
      201,
    );
    const token = body.token as string;
    // As GitHub's since 2026-04-27.
    expect([token.length, token.split('.').length]).toEqual([520, 3]);
    await ask('GET', '/orgs/{org}/actions/runners', '/orgs/acme/actions/runners', 200, { token });
    await ask(
      'GET',
      '/repos/{owner}/{repo}/actions/runners',
      '/repos/acme/widgets/actions/runners',
      200,
      { token },
    );
    const installed = await ask(
      'GET',
      '/installation/repositories',
      '/installation/repositories',
      200,
      { token },
    );
    expect(installed.body).toMatchObject({
      repository_selection: 'all',
      repositories: [{ full_name: 'acme/widgets' }],
    });
    await ask('GET', '/orgs/{org}/actions/runners', '/orgs/other/actions/runners', 404, { token });
    await ask(
      'GET',
      '/enterprises/{enterprise}/actions/runners',
      '/enterprises/big/actions/runners',
      403,
      { token },
    );
    await ok(
      'POST',
      '/app/installations/{installation_id}/access_tokens',
      '/app/installations/71/access_tokens',
      404,
    );
  });

  test.each([
    ['no token', ''],
    ['not a JWT', 'pat'],
    ['expired', appToken({ exp: 1 })],
    ['too long', appToken({ exp: Math.floor(Date.now() / 1000) + 3600 })],
    ['issued in the future', appToken({ iat: Math.floor(Date.now() / 1000) + 600 })],
    [
      'forged',
      `${appToken().split('.').slice(0, 2).join('.')}.${Buffer.from('no').toString('base64url')}`,
    ],
  ])('refuses a bad JSON web token: %s', async (_name, token) => {
    await ask('GET', '/app', '/app', 401, { token });
  });

  test('lists and repeats webhook deliveries', async () => {
    simulator.setWebhook({ url: 'http://127.0.0.1:1/nobody', secret: 's' });
    simulator.queueJob({ repo: 'acme/widgets', labels: ['nobody-has-this'] });
    await simulator.waitFor(
      () => simulator.deliveries().some(({ status }) => status === 'failed to connect'),
      'a failed delivery',
    );
    const { body } = await ok(
      'GET',
      '/app/hook/deliveries',
      '/app/hook/deliveries?status=failure',
      200,
    );
    const { id, guid } = body[0];
    await ok('GET', '/app/hook/deliveries/{delivery_id}', `/app/hook/deliveries/${id}`, 200);
    await ok(
      'POST',
      '/app/hook/deliveries/{delivery_id}/attempts',
      `/app/hook/deliveries/${id}/attempts`,
      202,
    );
    const again = await simulator.waitFor(
      () =>
        simulator
          .deliveries()
          .find((delivery) => delivery.redelivery && delivery.status !== 'pending'),
      'the redelivery',
    );
    expect(again.guid).toBe(guid);
    await ask(
      'GET',
      '/orgs/{org}/hooks/{hook_id}/deliveries',
      '/orgs/acme/hooks/1/deliveries',
      200,
    );
    await ask(
      'GET',
      '/repos/{owner}/{repo}/hooks/{hook_id}/deliveries',
      '/repos/acme/widgets/hooks/1/deliveries',
      200,
    );
    simulator.setWebhook(undefined);
  });
});
