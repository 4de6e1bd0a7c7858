/** Requests that the adapter of Gitea sends: which are shared, and which are never remembered. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiServer } from '../../../activities/ports.ts';
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

beforeEach(async () => {
  [requests, login, toDisable, held] = [[], 'tester', 0, []];
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

function answerTo(method: string, path: string): [status: number, body?: object] {
  if (path === '/user') return [200, { login }];
  if (path.startsWith('/orgs/tester')) return [404, { message: 'not found' }];
  if (path.includes('/jobs')) return [200, { total_count: 0, jobs: [] }];
  if (method === 'DELETE') return [204];
  const id = Number(/\/runners\/(\d+)$/.exec(path)?.[1] ?? 0);
  const runner = { id, name: `r-${id}`, status: 'offline', disabled: false };
  return [200, id === 0 ? { total_count: 0, runners: [] } : runner];
}

const count = (request: string): number => requests.filter((one) => one === request).length;

test('runners that are removed together share the list of running jobs, after they are disabled', async () => {
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

test('lists of queued jobs are shared, and used again for their maximum age', async () => {
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

test('a token of another user does not see its own runners as those of the token before', async () => {
  const scope: Scope = { kind: 'organization', name: 'tester' };
  expect(await server.listRunners(scope)).toEqual([]);
  login = 'someone';
  await expect(server.findRunner(scope, { id: '1', name: 'r-1' })).rejects.toMatchObject({
    kind: 'credentials',
  });
});
