import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import { startSimulator, type Simulator } from '../../tools/simulator/simulator.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import type { CiJobList, Scope } from '../../core/domain/ciServer.ts';

const ORGANIZATION: Scope = { kind: 'organization', name: 'acme' };
process.env['HOLDFAST_JOBS_TOKEN'] = 'ghp_simulator';

let simulator: Simulator;
let server: CiServer;
let close: () => Promise<void>;

beforeEach(async () => {
  simulator = await startSimulator();
  ({ server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_JOBS_TOKEN',
    apiUrl: simulator.url,
  }));
});
afterEach(async () => {
  await close();
  await simulator.stop();
});

const queue = (repo: string, run_id: number): number =>
  simulator.queueJob({ repo, run_id, labels: ['nobody'] }).id;
const look = async (scope = ORGANIZATION): Promise<CiJobList> =>
  (await server.listQueuedJobs?.(scope)) as CiJobList;
const idsOf = ({ jobs }: CiJobList): number[] =>
  jobs.map(({ id }) => Number(id)).toSorted((a, b) => a - b);
const statuses = (): Record<number, number> =>
  Object.fromEntries(
    [...Map.groupBy(simulator.requests(), ({ status }) => status)].map(([status, all]) => [
      status,
      all.length,
    ]),
  );

test('all pages of runs and jobs of all repositories of an organization, and of no other', async () => {
  const ids = [
    ...Array.from({ length: 130 }, (_, index) => queue('acme/web', 9_000 + index)),
    ...Array.from({ length: 120 }, () => queue('acme/matrix', 1)),
    queue('acme/other', 2),
  ];
  queue('acme-labs/web', 3);
  const found = await look();
  expect(found.complete).toBe(true);
  expect(idsOf(found)).toEqual(ids);
  expect(idsOf(await look({ kind: 'repository', name: 'acme/other' }))).toEqual(ids.slice(-1));
});

test('a check without changes costs nothing of the rate limit', async () => {
  const ids = [queue('acme/web', 1), queue('acme/other', 2)];
  await look();
  const first = statuses()[200] ?? 0;
  expect(first).toBe(1 + 2 * 3 + 2);
  expect(idsOf(await look())).toEqual(ids);
  // The queued runs of both repositories are listed again at the end of each check.
  expect(statuses()).toEqual({ 200: first, 304: 2 + first + 2 });
  const id = queue('acme/web', 1);
  expect(idsOf(await look())).toEqual([...ids, id]);
});

test('unchanged lists are free, so that the budget of lists remains for changes', async () => {
  const repository: Scope = { kind: 'repository', name: 'acme/web' };
  const ids = [queue('acme/web', 1)];
  const first = idsOf(await look(repository));
  // Five requests each, of which lists may cost 700 in an hour.
  for (let times = 0; times < 200; times++) await look(repository);
  expect(statuses()).toEqual({ 200: 4, 304: 1 + 1_000 });
  ids.push(queue('acme/web', 2));
  const found = await look(repository);
  expect([first, idsOf(found), found.complete]).toEqual([ids.slice(0, 1), ids, true]);
});

test('callers during a check share the next one', async () => {
  const first = queue('acme/web', 1);
  simulator.addFault({ kind: 'latency', ms: 200, endpoint: 'GET /orgs/acme/repos*', count: 1 });
  const one = look();
  const second = queue('acme/other', 2);
  const others = [look(), look(), look()];
  expect(idsOf(await one)).toContain(first);
  for (const other of others) expect(idsOf(await other)).toEqual([first, second]);
  expect(simulator.requests().filter(({ path }) => path === '/orgs/acme/repos')).toHaveLength(2);
});

test('an inaccessible repository makes the result incomplete, not wrong', async () => {
  const id = queue('acme/web', 1);
  queue('acme/secret', 2);
  simulator.addFault({ kind: 'not_found', endpoint: 'GET /repos/acme/secret/*' });
  expect(await look()).toMatchObject({ jobs: [{ id: String(id) }], complete: false });
  expect(await ciServerError(look({ kind: 'repository', name: 'acme/secret' }))).toMatchObject({
    kind: 'credentials',
  });
});

test('an error during a check fails it; the next check starts again', async () => {
  const id = queue('acme/web', 1);
  queue('acme/other', 2);
  simulator.addFault({
    kind: 'status',
    status: 502,
    endpoint: 'GET /repos/acme/other/*',
    count: 1,
  });
  expect(await ciServerError(look())).toMatchObject({ kind: 'unavailable' });
  expect(idsOf(await look())).toContain(id);
});

test('an App checks the repositories of its installations; if they are not all, the result is incomplete', async () => {
  const keys = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  process.env['HOLDFAST_JOBS_KEY'] = keys.privateKey;
  const scopes = {
    34: ['orgs/acme', 'repos/acme/*'],
    35: ['orgs/acme', 'repos/acme/web'],
    36: ['repos/acme/*'],
  };
  const installations = Object.entries(scopes).map(([id, all]) => ({
    id: Number(id),
    account: 'acme',
    scopes: all,
  }));
  const github = await startSimulator({
    apps: [{ id: 12, publicKey: keys.publicKey, installations }],
  });
  const ids = ['acme/web', 'acme/secret'].map(
    (repo) => github.queueJob({ repo, labels: ['nobody'] }).id,
  );
  github.queueJob({ repo: 'beta/web', labels: ['nobody'] });
  const lookAs = async (installationId: number): Promise<CiJobList> => {
    const app = ciServerOf({
      type: 'app',
      appId: 12,
      installationId,
      privateKeyEnv: 'HOLDFAST_JOBS_KEY',
      apiUrl: github.url,
    });
    try {
      return (await app.server.listQueuedJobs?.(ORGANIZATION)) as CiJobList;
    } finally {
      await app.close();
    }
  };
  const [all, some] = [await lookAs(34), await lookAs(35)];
  expect([idsOf(all), all.complete]).toEqual([ids, true]);
  expect([idsOf(some), some.complete]).toEqual([ids.slice(0, 1), false]);
  expect(await ciServerError(lookAs(36))).toMatchObject({ kind: 'credentials' });
  await github.stop();
});

test('one job by its ID: while it waits, after it has ended, and if it is unknown', async () => {
  const id = queue('acme/web', 1);
  const ask = async (repository: string, scope = ORGANIZATION): Promise<unknown> =>
    await server.getJob?.(scope, { id: String(id), repository });
  expect(await ask('acme/web')).toEqual((await look()).jobs[0]);
  expect(await ask('acme/web', { kind: 'enterprise', name: 'big' })).toMatchObject({
    id: String(id),
  });
  simulator.cancelJob(id);
  expect(await ask('acme/web')).toBe('absent');
  simulator.addFault({ kind: 'not_found', endpoint: 'GET /repos/acme/web/*' });
  expect(await ask('acme/web')).toBeUndefined();
  const before = simulator.requests().length;
  expect([
    await ask('beta/web'),
    await ask('acme/web', { kind: 'repository', name: 'acme/other' }),
  ]).toEqual([undefined, undefined]);
  expect(simulator.requests()).toHaveLength(before);
});

test('lists of hundreds of runs use up the budget of lists, and not that of single jobs', async () => {
  const ids = Array.from({ length: 705 }, (_, index) => queue('acme/web', index + 1));
  const begin = Date.now();
  const { complete, budgetUntil = 0 } = await look();
  expect(complete).toBe(false);
  expect(budgetUntil).toBeGreaterThan(begin + 3_500_000);
  expect(budgetUntil).toBeLessThanOrEqual(Date.now() + 3_600_000);
  const before = simulator.requests().length;
  expect(await look()).toEqual({ jobs: [], complete: false, budgetUntil: expect.any(Number) });
  expect(simulator.requests()).toHaveLength(before);
  const asked = await Promise.all(
    ids
      .slice(0, 30)
      .map(
        async (id) =>
          await server.getJob?.(ORGANIZATION, { id: String(id), repository: 'acme/web' }),
      ),
  );
  expect(asked.filter((job) => job !== undefined)).toHaveLength(25);
  expect(simulator.requests()).toHaveLength(before + 25);
});

test('results of other checks are used if they are recent', async () => {
  const id = queue('acme/web', 1);
  await look();
  const before = simulator.requests().length;
  const shared = await server.listQueuedJobs?.(ORGANIZATION, undefined, undefined, 60_000);
  expect(shared).toMatchObject({ jobs: [{ id: String(id) }], ageMs: expect.any(Number) });
  expect(simulator.requests()).toHaveLength(before);
  expect(await look()).not.toHaveProperty('ageMs');
  expect(simulator.requests().length).toBeGreaterThan(before);
});

test('the jobs of an enterprise cannot be listed', async () => {
  expect(await look({ kind: 'enterprise', name: 'big' })).toEqual({
    jobs: [],
    complete: false,
    unsupported: true,
  });
});
