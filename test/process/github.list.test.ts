/** All runners of a scope, as the sweep asks for them: a list that is not whole is none. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import { listJson, RecordedGitHub, runnerJson } from '../support/recordedGitHub.ts';
import type { Scope } from '../../core/domain/ciServer.ts';

const SCOPE: Scope = { kind: 'organization', name: 'acme' };
const RUNNERS = '/orgs/acme/actions/runners';
process.env['HOLDFAST_LIST_TOKEN'] = 'ghp_list';

let github: RecordedGitHub;
let server: CiServer;
let close: () => Promise<void>;

beforeEach(async () => {
  github = await new RecordedGitHub().start();
  ({ server, close } = ciServerOf({
    type: 'pat',
    tokenEnv: 'HOLDFAST_LIST_TOKEN',
    apiUrl: github.url,
  }));
});

afterEach(async () => {
  await close();
  await github.stop();
});

const all = Array.from({ length: 250 }, (_, i) => runnerJson(i + 1, `r-${i + 1}`));
const pages =
  (pageOf: (page: number) => object[]) =>
  ({ url }: { url: string }) => ({
    status: 200,
    body: { total_count: 250, runners: pageOf(Number(/[?&]page=(\d+)/.exec(url)?.[1])) },
  });

test('to its last page', async () => {
  github.on(
    `GET ${RUNNERS}`,
    pages((page) => all.slice(100 * (page - 1), 100 * page)),
  );
  expect((await server.listRunners(SCOPE)).map(({ id }) => id)).toEqual(
    Array.from({ length: 250 }, (_, i) => String(i + 1)),
  );
  expect(github.requests).toHaveLength(3);
});

test('empty', async () => {
  github.on(`GET ${RUNNERS}`, listJson());
  expect(await server.listRunners(SCOPE)).toEqual([]);
});

test('truncated: not a list', async () => {
  github.on(
    `GET ${RUNNERS}`,
    pages((page) => (page === 1 ? all.slice(0, 100) : [])),
  );
  expect(await ciServerError(server.listRunners(SCOPE))).toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('ends after 100 of 250'),
  });
});

test('of a scope that the credential cannot access any more', async () => {
  github.on(`GET ${RUNNERS}`, {
    status: 404,
    body: {
      message: 'Not Found',
      documentation_url: 'https://docs.github.com/rest',
      status: '404',
    },
  });
  expect(await ciServerError(server.listRunners(SCOPE))).toMatchObject({ kind: 'credentials' });
});
