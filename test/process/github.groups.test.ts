import type { RunnerGroupRef } from '../../core/domain/ciServer.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseCredentials } from '../../activities/ciServers/credentials.ts';
import { checkPublicGroups } from '../../worker/checks/publicGroupsCheck.ts';
import type { CiServer } from '../../activities/ports/ciServer.ts';
import type { RegisterRequest } from '../../core/domain/ciServer.ts';
import { ciServerError, ciServerOf } from '../support/ciServers.ts';
import { startSimulator } from '../../tools/simulator/simulator.ts';
import { listJson, RecordedGitHub } from '../support/recordedGitHub.ts';
import { WireRunner } from '../support/wireRunner.ts';

const GROUPS = '/api/v3/orgs/acme/actions/runner-groups';
const RUNNERS = '/api/v3/orgs/acme/actions/runners';
const JIT: RegisterRequest = {
  scope: { kind: 'organization', name: 'acme' },
  name: 'r-1',
  labels: ['linux'],
  group: { name: 'gpu' },
  ephemeral: true,
  mode: 'jit',
};
const TOKEN: RegisterRequest = { ...JIT, ephemeral: false, mode: 'token' };
const MINUTE = 60_000;

let folder: string;
let github: RecordedGitHub;
let server: CiServer;
let close: () => Promise<void>;
let now: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  writeFileSync(join(folder, 'token'), 'ghp_x');
  github = await new RecordedGitHub().start();
  now = Date.now();
  const clock = {
    now: () => now,
    elapsed: () => now,
    sleep: () => Promise.reject(new Error('no sleep expected')),
  };
  ({ server, close } = ciServerOf(
    { type: 'pat', tokenFile: join(folder, 'token'), apiUrl: `${github.url}/api/v3` },
    { clock },
  ));
  github.on(`POST ${RUNNERS}/generate-jitconfig`, {
    status: 201,
    body: { runner: { id: 42, name: 'r-1' }, encoded_jit_config: 'eyJ4IjoxfQ==' },
  });
  github.on(`POST ${RUNNERS}/registration-token`, {
    status: 201,
    body: { token: 'AAA', expires_at: '2099-01-01T00:00:00Z' },
  });
});

afterEach(async () => {
  await close();
  await github.stop();
  rmSync(folder, { recursive: true });
});

const groups = (...names: string[]): { status: number; body: object } => ({
  status: 200,
  body: {
    total_count: names.length,
    runner_groups: names.map((name, index) => ({ id: index + 1, name, default: index === 0 })),
  },
});
const listed = (): string[] => github.seen.filter((seen) => seen.includes('runner-groups'));
const joined = (): unknown[] =>
  github.requests
    .filter(({ url }) => url.endsWith('generate-jitconfig'))
    .map(({ body }) => (body as { runner_group_id: number }).runner_group_id);

test('the ID of a name, ignoring case: one list for many runners at once, for ten minutes', async () => {
  github.on(`GET ${GROUPS}`, groups('Default', 'GPU'));
  await Promise.all(Array.from({ length: 20 }, async () => await server.register(JIT)));
  expect(joined()).toEqual(Array.from({ length: 20 }, () => 2));
  expect(listed()).toEqual([`GET ${GROUPS}?per_page=100&page=1`]);
  now += 9 * MINUTE;
  await server.register(JIT);
  expect(listed()).toHaveLength(1);
  now += 2 * MINUTE;
  await server.register(JIT);
  expect(listed()).toHaveLength(2);
});

test('all pages are read', async () => {
  const page = (from: number, count: number): { status: number; body: object } => ({
    status: 200,
    body: {
      total_count: 130,
      runner_groups: Array.from({ length: count }, (_, index) => ({
        id: from + index,
        name: `group-${from + index}`,
      })),
    },
  });
  github.on(`GET ${GROUPS}`, page(1, 100), page(101, 30));
  await server.register({ ...JIT, group: { name: 'group-129' } });
  expect([listed().length, joined()]).toEqual([2, [129]]);
});

test('a missing name: one clear error, without a request for each runner; a group created in the meantime is found a minute later', async () => {
  github.on(`GET ${GROUPS}`, groups('Default', 'big'), groups('Default', 'big', 'gpu'));
  for (let runner = 0; runner < 5; runner++) {
    const error = await ciServerError(server.register(JIT));
    expect(error).toMatchObject({
      kind: 'rejected',
      message: expect.stringContaining(
        'there is no runner group "gpu": check runnerGroup; the credential sees "Default", "big"',
      ),
    });
  }
  expect(listed()).toHaveLength(1);
  now += MINUTE;
  await server.register(JIT);
  expect(joined()).toEqual([3]);
});

test('a group that was created again with its name is resolved again', async () => {
  github
    .on(`GET ${GROUPS}`, groups('Default', 'gpu'), groups('Default', 'other', 'gpu'))
    .on(`GET ${RUNNERS}`, listJson());
  github.on(`POST ${RUNNERS}/generate-jitconfig`, { status: 404, body: { message: 'Not Found' } });
  expect(await ciServerError(server.register(JIT))).toMatchObject({
    kind: 'rejected',
    message: expect.stringContaining(
      'runner group "gpu" (2) may not be used or does not exist; check runnerGroup',
    ),
  });
  github.on(`POST ${RUNNERS}/generate-jitconfig`, {
    status: 201,
    body: { runner: { id: 43, name: 'r-1' }, encoded_jit_config: 'eyJ4IjoxfQ==' },
  });
  await server.register(JIT);
  expect(joined().at(-1)).toBe(3);
});

test('a credential that cannot list groups', async () => {
  github.on(`GET ${GROUPS}`, {
    status: 403,
    body: { message: 'Resource not accessible by personal access token' },
  });
  expect(await ciServerError(server.register(JIT))).toMatchObject({
    kind: 'credentials',
    status: 403,
  });
});

test.each<[string, RunnerGroupRef, string | undefined]>([
  ['by its name', { name: 'gpu' }, 'gpu'],
  ['in the words of the list', { name: 'GPU' }, 'gpu'],
  ['by its id', { id: '2' }, 'gpu'],
  ['the default one, by its id: without a list', { id: '1' }, undefined],
  ['the default one: without a list', 'default', undefined],
])('a token: the runner gets the name of its group, %s', async (_how, group, expected) => {
  github.on(`GET ${GROUPS}`, groups('Default', 'gpu'));
  expect((await server.register({ ...TOKEN, group })).env['RUNNER_GROUP']).toBe(expected);
  expect(listed()).toHaveLength(expected === undefined ? 0 : 1);
});

test.each(['jit', 'token'] as const)(
  '%s: by the name of one of two hundred groups, at a server that answers as GitHub does',
  async (mode) => {
    const scope = { kind: 'enterprise', name: 'big' } as const;
    const simulator = await startSimulator({
      tokens: [{ token: 'ghp_x', name: 'groups' }],
      groups: Array.from({ length: 200 }, (_, index) => ({
        id: index + 2,
        name: `group ${index + 2}`,
        scope: 'enterprises/big',
      })),
    });
    const { server: simulated, close: closeSimulated } = ciServerOf({
      type: 'pat',
      tokenFile: join(folder, 'token'),
      apiUrl: simulator.url,
    });
    try {
      const { runner } = await WireRunner.start(
        simulator.url,
        await simulated.register({
          ...JIT,
          scope,
          group: { name: 'Group 177' },
          mode,
          ephemeral: mode === 'jit',
        }),
      );
      expect(simulator.runner('r-1')).toMatchObject({ groupId: 177 });
      runner.stop();
    } finally {
      await closeSimulated();
      await simulator.stop();
    }
  },
);

test('a token: a missing ID', async () => {
  github.on(`GET ${GROUPS}`, groups('Default'));
  expect(await ciServerError(server.register({ ...TOKEN, group: { id: '7' } }))).toMatchObject({
    kind: 'rejected',
    message: expect.stringContaining('runner group 7 does not exist: check runnerGroupId'),
  });
});

describe('groups that public repositories may use', () => {
  const said = (allows_public_repositories?: boolean): { status: number; body: object } => ({
    status: 200,
    body: {
      total_count: 1,
      runner_groups: [{ id: 1, name: 'Default', default: true, allows_public_repositories }],
    },
  });
  const credential = (more: object = {}): Record<string, unknown> => ({
    type: 'pat',
    tokenFile: join(folder, 'token'),
    apiUrl: `${github.url}/api/v3`,
    ...more,
  });

  test.each([
    ['may be joined', {}, true, undefined],
    ['may not, where the credential says so', { allowPublicRepositories: false }, true, 'rejected'],
    [
      'nor may those of which GitHub says nothing',
      { allowPublicRepositories: false },
      undefined,
      'rejected',
    ],
    ['others may be joined', { allowPublicRepositories: false }, false, undefined],
  ])('%s', async (_what, more, isPublic, kind) => {
    github.on(`GET ${GROUPS}`, said(isPublic));
    const strict = ciServerOf(credential(more));
    try {
      for (const request of [JIT, TOKEN]) {
        const joining = strict.server.register({ ...request, group: 'default' });
        const error: unknown = await joining.then(
          () => undefined,
          (reason: unknown) => reason,
        );
        expect((error as { kind?: string } | undefined)?.kind).toBe(kind);
      }
    } finally {
      await strict.close();
    }
    expect(github.seen.some((seen) => /generate-jitconfig|registration-token/.test(seen))).toBe(
      kind === undefined,
    );
  });

  test('are in the check of each organization of a credential', async () => {
    github.on(`GET ${GROUPS}`, said(true));
    const check = async (more: object): Promise<unknown[]> =>
      await checkPublicGroups(
        parseCredentials({ default: credential({ scopes: ['acme', 'other/web'], ...more }) }),
      );
    expect(await check({})).toEqual([
      {
        level: 'warning',
        message: expect.stringContaining('"Default" of acme'),
        fix: expect.stringContaining('allowPublicRepositories: false'),
      },
    ]);
    expect(await check({ allowPublicRepositories: false })).toEqual([]);
    github.on(`GET ${GROUPS}`, { status: 403, body: { message: 'Resource not accessible' } });
    expect(await check({})).toEqual([
      {
        level: 'warning',
        message: expect.stringContaining('cannot be read'),
        fix: expect.anything(),
      },
    ]);
  });
});
