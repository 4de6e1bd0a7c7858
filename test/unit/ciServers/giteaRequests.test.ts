/** Requests that the adapter of Gitea sends: which are shared, and which are never remembered. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiServer } from '../../../activities/ports/ciServer.ts';
import type { Scope } from '../../../core/domain/ciServer.ts';
import { ciServerOf } from '../../support/ciServers.ts';

const REPOSITORY: Scope = { kind: 'repository', name: 'acme/app' };
const RUNNERS = '/repos/acme/app/actions/runners';
const BUSY = '/repos/acme/app/actions/jobs?status=in_progress';

let gitea: Server;
let server: CiServer;
let close: () => Promise<void>;
let requests: string[];
/** User of the token. */
let login: string;
/** Number of runners that must be disabled before the running jobs are listed. */
let toDisable: number;
let held: (() => void)[];
/** Number of entries of each list, which grows with every page; 0: lists are empty. */
let growing: number;
/** ID of the runner that is running a job, while lists grow. */
const BUSY_ID = 7;

beforeEach(async () => {
  [requests, login, toDisable, held, growing] = [[], 'tester', 0, [], 0];
  gitea = createServer(({ method, url = '' }, response) => {
    const path = url.replace('/api/v1', '').replace(/[?&](limit|page)=\d+/g, '');
    requests.push(`${method} ${path}`);
    const [status, body] = answerTo(method ?? '', path);
    const answer = (): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(body === undefined ? undefined : JSON.stringify(body));
    };
    if (method === 'PATCH') toDisable--;
    if (toDisable > 0 && path === BUSY) return void held.push(answer);
    answer();
    if (toDisable === 0) for (const late of held.splice(0)) late();
  });
  await new Promise<void>((resolve) => gitea.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(gitea.address() as AddressInfo).port}`;
  ({ server, close } = ciServerOf({
    server: 'gitea',
    type: 'pat',
    tokenProvider: () => 'token',
    apiUrl: `${url}/api/v1`,
  }));
});
afterEach(async () => {
  await close();
  gitea.close();
  gitea.closeAllConnections();
});

const RUNNER = { id: BUSY_ID, name: `r-${BUSY_ID}`, status: 'active', disabled: false };
const JOB = {
  id: 1,
  url: 'http://gitea/api/v1/repos/acme/app/actions/jobs/1',
  status: 'in_progress',
  run_attempt: 1,
  run_id: 1,
  created_at: '2026-01-01T00:00:00Z',
  started_at: '2026-01-01T00:00:00Z',
  runner_id: BUSY_ID,
  runner_name: RUNNER.name,
  labels: [],
};

/** A full page: the entry, and others with IDs of their own. */
const page = <T extends object>(entry: T): T[] => [
  entry,
  ...Array.from({ length: 49 }, (_, index) => ({
    ...entry,
    id: 101 + index,
    name: `r-${101 + index}`,
    runner_id: 101 + index,
  })),
];

function answerTo(method: string, path: string): [status: number, body?: object] {
  if (path === '/user') return [200, { login }];
  if (path.startsWith('/orgs/tester')) return [404, { message: 'not found' }];
  if (growing > 0 && path.includes('/jobs'))
    return [200, { total_count: growing++, jobs: page(JOB) }];
  if (growing > 0 && method === 'GET' && path.endsWith('/runners'))
    return [200, { total_count: growing++, runners: page(RUNNER) }];
  if (path.endsWith('/registration-token')) return [200, { token: 'once' }];
  if (path.endsWith('/Register'))
    return [200, { runner: { id: '9', uuid: 'u', token: 't', name: 'r-9' } }];
  if (path.includes('/jobs')) return [200, { total_count: 0, jobs: [] }];
  if (method === 'DELETE') return [204];
  const id = Number(/\/runners\/(\d+)$/.exec(path)?.[1] ?? 0);
  const runner = { id, name: `r-${id}`, status: 'offline', disabled: false };
  return [200, id === 0 ? { total_count: 0, runners: [] } : runner];
}

const count = (request: string): number => requests.filter((one) => one === request).length;

test('concurrent removals of runners share the list of running jobs, after they are disabled', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => String(index + 1));
  toDisable = ids.length;
  await Promise.all(ids.map((id) => server.removeRegistration(REPOSITORY, id)));
  expect(count(`GET ${BUSY}`)).toBeLessThanOrEqual(3);
  for (const id of ids) {
    const disabled = requests.indexOf(`PATCH ${RUNNERS}/${id}`);
    const removed = requests.indexOf(`DELETE ${RUNNERS}/${id}`);
    expect(requests.slice(disabled, removed)).toContain(`GET ${BUSY}`);
  }
});

test('lists of queued jobs are shared, and reused up to their maximum age', async () => {
  const list = async (maxAgeMs?: number) =>
    await server.listQueuedJobs?.(REPOSITORY, undefined, undefined, maxAgeMs);
  const sent = (): number => requests.filter((one) => one.includes('/jobs?')).length;
  await Promise.all([list(), list(), list()]);
  const first = sent();
  expect(first).toBeLessThanOrEqual(2);
  expect(await list(60_000)).toMatchObject({ complete: true, ageMs: expect.any(Number) });
  expect(sent()).toBe(first);
  await list();
  expect(sent()).toBe(first + 1);
});

test('a token of another user does not see its own runners as those of the previous token', async () => {
  const scope: Scope = { kind: 'organization', name: 'tester' };
  expect(await server.listRunners(scope)).toEqual([]);
  login = 'someone';
  await expect(server.findRunner(scope, { id: '1', name: 'r-1' })).rejects.toMatchObject({
    kind: 'credentials',
  });
});

test('lists that change with every page: an idle runner is removed, a busy one is not, and others are registered', async () => {
  growing = 60;
  expect(await server.removeRegistration(REPOSITORY, '1')).toBe('removed');
  await expect(server.removeRegistration(REPOSITORY, String(BUSY_ID))).rejects.toMatchObject({
    kind: 'busy',
  });
  const request = {
    scope: REPOSITORY,
    labels: ['linux'],
    group: 'default',
    ephemeral: true,
    mode: 'jit',
  } as const;
  expect(await server.register({ ...request, name: 'r-9' })).toMatchObject({ runnerId: '9' });
  await expect(server.register({ ...request, name: RUNNER.name })).rejects.toMatchObject({
    kind: 'name_taken',
  });
  // The absence of a runner is proven by a whole list only.
  await expect(server.findRunner(REPOSITORY, { name: 'missing' })).rejects.toMatchObject({
    kind: 'unavailable',
  });
  await expect(server.listRunners(REPOSITORY)).rejects.toMatchObject({ kind: 'unavailable' });
});
