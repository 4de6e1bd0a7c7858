import { afterEach, expect, test } from '@jest/globals';
import type { Fault } from './faults.ts';
import { Fleet } from './fleet.ts';
import type { SimulatorOptions } from './options.ts';
import type { SimulatedRunner } from './simulatedRunner.ts';
import { startSimulator, type Simulator } from './simulator.ts';
import { asOwner, jitEnv, tokenEnv } from '../../test/support/runnerProcess.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function simulate(
  options: SimulatorOptions = {},
): Promise<{ simulator: Simulator; fleet: Fleet }> {
  const simulator = await startSimulator(options);
  const fleet = new Fleet(simulator.url);
  cleanups.push(async () => {
    fleet.close();
    await simulator.stop();
  });
  return { simulator, fleet };
}
const LIST = '/orgs/acme/actions/runners';
const listed = async (url: string): Promise<any[]> =>
  (await asOwner(url, 'GET', LIST)).body.runners;

async function busyRunner({
  simulator,
  fleet,
}: {
  simulator: Simulator;
  fleet: Fleet;
}): Promise<{ id: number; jobId: number }> {
  const { env, id } = await jitEnv(simulator.url, 'busy');
  fleet.start(env);
  const job = simulator.queueJob({ repo: 'acme/widgets', sleepMs: 60_000 });
  await simulator.waitForJob(job.id, 'in_progress');
  return { id, jobId: job.id };
}

test('busy and offline lies are told for as often as asked, and the truth stays known', async () => {
  const world = await simulate();
  const { id } = await busyRunner(world);
  const { simulator } = world;
  simulator.addFault({ kind: 'busy_lies', count: 1 });
  simulator.addFault({ kind: 'offline_lies', endpoint: `GET ${LIST}/*`, count: 1 });
  expect(await listed(simulator.url)).toMatchObject([{ id, busy: false, status: 'online' }]);
  expect((await asOwner(simulator.url, 'GET', `${LIST}/${id}`)).body).toMatchObject({
    busy: true,
    status: 'offline',
  });
  expect(simulator.runner('busy')).toMatchObject({ busy: true, status: 'online' });
  expect((await asOwner(simulator.url, 'GET', `${LIST}/${id}`)).body).toMatchObject({
    busy: true,
    status: 'online',
  });
});

test('a stale list shows what was, until it is too old', async () => {
  const { simulator } = await simulate();
  simulator.addFault({ kind: 'stale_list', ageMs: 2_000 });
  expect(await listed(simulator.url)).toEqual([]);
  await jitEnv(simulator.url, 'new');
  expect(await listed(simulator.url)).toEqual([]);
  const deadline = Date.now() + 30_000;
  while ((await listed(simulator.url)).length === 0) expect(Date.now()).toBeLessThan(deadline);
  simulator.clearFaults();
  expect(await listed(simulator.url)).toHaveLength(1);
});

test('DELETE of a busy runner is accepted only in the first part of its job', async () => {
  const world = await simulate();
  const { id, jobId } = await busyRunner(world);
  const { simulator } = world;
  const { id: fault } = simulator.addFault({ kind: 'delete_accepts_busy', forMs: 0 });
  await simulator.waitFor(
    () => Date.now() - Date.parse(simulator.job(jobId)?.started_at ?? '') > 1,
    'a moment of work',
  );
  expect((await asOwner(simulator.url, 'DELETE', `${LIST}/${id}`)).status).toBe(422);
  simulator.clearFaults(fault);
  simulator.addFault({ kind: 'delete_accepts_busy' });
  expect((await asOwner(simulator.url, 'DELETE', `${LIST}/${id}`)).status).toBe(204);
  expect(simulator.job(jobId)?.status).toBe('in_progress');
});

test('an idle runner may be called busy', async () => {
  const { simulator } = await simulate();
  const { id } = await jitEnv(simulator.url, 'idle');
  simulator.addFault({ kind: 'delete_says_busy', text: 'older', count: 1 });
  expect(await asOwner(simulator.url, 'DELETE', `${LIST}/${id}`)).toMatchObject({
    status: 422,
    body: { message: 'Bad request - Runner "idle" is still running a job"' },
  });
  expect((await asOwner(simulator.url, 'DELETE', `${LIST}/${id}`)).status).toBe(204);
});

test.each<[string, Fault, boolean]>([
  ['before it took effect', { kind: 'drop', when: 'before' }, false],
  ['after it took effect', { kind: 'drop', when: 'after' }, true],
])('a connection dropped %s', async (_when, fault, registered) => {
  const { simulator } = await simulate();
  simulator.addFault({ ...fault, count: 1 });
  await expect(jitEnv(simulator.url, 'dropped')).rejects.toThrow('fetch failed');
  expect(simulator.runner('dropped') !== undefined).toBe(registered);
});

test('a credential that lost its scope gets 404 on all of it; a revoked one 401', async () => {
  const { simulator } = await simulate();
  const { id } = await jitEnv(simulator.url, 'unseen');
  simulator.setAccess('default', { scopes: ['orgs/other'] });
  for (const path of [LIST, `${LIST}/${id}`])
    expect((await asOwner(simulator.url, 'GET', path)).status).toBe(404);
  expect((await asOwner(simulator.url, 'DELETE', `${LIST}/${id}`)).status).toBe(404);
  expect(simulator.runner('unseen')).toBeDefined();
  simulator.revokeToken('ghp_simulator');
  expect((await asOwner(simulator.url, 'GET', LIST)).status).toBe(401);
});

test('the primary limit counts down, refuses at nothing left, and starts anew', async () => {
  const { simulator } = await simulate({ rateLimit: { limit: 2, windowMs: 60_000 } });
  const ask = async (headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${simulator.url}${LIST}`, {
      headers: { authorization: 'token ghp_simulator', ...headers },
    });
  const first = await ask();
  expect(first.headers.get('x-ratelimit-remaining')).toBe('1');
  const again = await ask({ 'if-none-match': first.headers.get('etag') ?? '' });
  expect([again.status, again.headers.get('x-ratelimit-remaining')]).toEqual([304, '1']);
  expect((await ask()).headers.get('x-ratelimit-remaining')).toBe('0');
  const refused = await ask();
  expect([refused.status, refused.headers.get('x-ratelimit-remaining')]).toEqual([403, '0']);
  expect(Number(refused.headers.get('x-ratelimit-reset'))).toBeGreaterThan(Date.now() / 1000);
  expect(((await refused.json()) as { message: string }).message).toMatch(
    /^API rate limit exceeded for user ID/,
  );
  simulator.setRateLimit('default', { resetInMs: 0 });
  expect((await ask()).status).toBe(200);
});

test('registration and installation tokens end with their hour', async () => {
  const { simulator, fleet } = await simulate({
    registrationTokenMs: 60_000,
    installationTokenMs: 1,
    apps: [{ id: 7, installations: [{ id: 70, account: 'acme' }] }],
  });
  const app = simulator.world.settings.apps[0];
  const installation = app?.installations[0];
  if (!app || !installation) throw new Error('no app');
  const { token, expiresMs } = simulator.world.credentials.createInstallationToken(
    app,
    installation,
  );
  await simulator.waitFor(() => Date.now() > expiresMs, 'the token is out');
  expect(
    (await fetch(`${simulator.url}${LIST}`, { headers: { authorization: `Bearer ${token}` } }))
      .status,
  ).toBe(401);
  const env = await tokenEnv(simulator, 'again');
  const first = fleet.start({ ...env, RUNNER_NAME: 'first' });
  await simulator.waitFor(
    () => simulator.runner('first')?.status === 'online',
    'the token is good',
  );
  fleet.start({ ...env, RUNNER_NAME: 'second' });
  await simulator.waitFor(
    () => simulator.runner('second')?.status === 'online',
    'the token is good again',
  );
  simulator.world.settings.registrationTokenMs = 1;
  const late = await tokenEnv(simulator, 'late');
  await simulator.waitFor(
    () =>
      fleet.size === 2 &&
      !simulator.world.registrationTokens.valid(late['RUNNER_TOKEN'] ?? '', 'orgs/acme'),
    'the token is out',
  );
  expect(await fleet.start(late).ended).toBe('refused');
  await first.stop();
});

test('latency delays the answer, and only where it was asked for', async () => {
  const { simulator } = await simulate();
  simulator.addFault({ kind: 'latency', ms: 150, endpoint: 'POST *' });
  const before = performance.now();
  await asOwner(simulator.url, 'POST', `${LIST}/registration-token`);
  expect(performance.now() - before).toBeGreaterThanOrEqual(145);
  expect(simulator.faults()).toMatchObject([{ hits: 1 }]);
  await asOwner(simulator.url, 'GET', LIST);
  expect(simulator.faults()).toMatchObject([{ hits: 1 }]);
});

test('the secondary limit of writes: 900 points a minute, 5 each', async () => {
  const { simulator } = await simulate({ secondaryLimits: true });
  const statuses: number[] = [];
  for (let asked = 0; asked < 181; asked++)
    statuses.push((await asOwner(simulator.url, 'POST', `${LIST}/registration-token`)).status);
  expect(statuses.slice(0, 180).every((status) => status === 201)).toBe(true);
  expect(statuses[180]).toBe(403);
  expect((await asOwner(simulator.url, 'GET', LIST)).status).toBe(200);
});

test('a fleet: many runners on one connection take jobs, end, and fall silent together', async () => {
  const { simulator, fleet } = await simulate({ offlineAfterMs: 100 });
  const start = async (_: unknown, index: number): Promise<[string, SimulatedRunner]> => [
    `fleet-${index}`,
    fleet.start((await jitEnv(simulator.url, `fleet-${index}`)).env),
  ];
  const runners = new Map(await Promise.all(Array.from({ length: 200 }, start)));
  await simulator.waitFor(
    () => simulator.runners().every((runner) => runner.status === 'online'),
    'all online',
  );
  const jobs = Array.from({ length: 150 }, (_, index) =>
    simulator.queueJob({
      repo: 'acme/widgets',
      sleepMs: 20,
      ...(index === 0 ? { result: 'Failed' as const } : {}),
    }),
  );
  await simulator.waitFor(
    () => simulator.jobs().every((job) => job.status === 'completed'),
    'all jobs done',
  );
  expect(simulator.job(jobs[0]?.id ?? 0)?.conclusion).toBe('failure');
  const workers = new Set(simulator.jobs().map((job) => job.runner_name ?? ''));
  expect(workers.size).toBe(150);
  for (const name of workers) expect(await runners.get(name)?.ended).toBe('done');
  expect(simulator.runners()).toHaveLength(50);
  const [stopped, deleted] = simulator.runners();
  await runners.get(stopped?.name ?? '')?.stop();
  expect(await runners.get(stopped?.name ?? '')?.ended).toBe('stopped');
  expect((await asOwner(simulator.url, 'DELETE', `${LIST}/${deleted?.id}`)).status).toBe(204);
  expect(await runners.get(deleted?.name ?? '')?.ended).toBe('deleted');
  fleet.close();
  await simulator.waitFor(
    () => simulator.runners().every((runner) => runner.status === 'offline'),
    'all offline',
  );
});

test('a runner of a fleet that is killed keeps its job until the lease ends; a static one takes the next job', async () => {
  const { simulator, fleet } = await simulate({ leaseMs: 2_000, offlineAfterMs: 100 });
  const killed = fleet.start((await jitEnv(simulator.url, 'killed')).env);
  const job = simulator.queueJob({ repo: 'acme/widgets', sleepMs: 60_000 });
  await simulator.waitForJob(job.id, 'in_progress');
  killed.kill();
  expect(simulator.runner('killed')?.busy).toBe(true);
  expect(await simulator.waitForJob(job.id, 'completed')).toMatchObject({ conclusion: 'failure' });
  fleet.start(await tokenEnv(simulator, 'static'));
  for (const _ of [1, 2]) {
    const next = simulator.queueJob({ repo: 'acme/widgets' });
    expect(await simulator.waitForJob(next.id, 'completed')).toMatchObject({
      conclusion: 'success',
      runner_name: 'static',
    });
  }
});
