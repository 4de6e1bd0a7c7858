/** Responses of Gitea that a real server does not give on demand. */
import { describe, expect, test } from '@jest/globals';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { CredentialsError, parseCredentials } from '../../../activities/ciServers/credentials.ts';
import { attemptOf } from '../../../activities/ciServers/gitea/attempt.ts';
import { giteaUrlOf } from '../../../activities/ciServers/gitea/addresses.ts';
import { jobListAnswer } from '../../../activities/ciServers/gitea/responses.ts';

test.each<[what: string, runAttempt: number, runnerId: number | undefined, attempt: number]>([
  ['queued for the first time', 0, undefined, 1],
  ['running for the first time', 1, 7, 1],
  ['ended after its first attempt', 1, 7, 1],
  ['queued again', 1, 0, 2],
  ['running again', 2, 8, 2],
])('the attempt of a job that is %s', (_what, runAttempt, runnerId, attempt) => {
  expect(attemptOf({ runAttempt, runnerId })).toBe(attempt);
});

test('absent times and runners are omitted', () => {
  const { items } = jobListAnswer.parse({
    total_count: 1,
    jobs: [
      {
        id: 3,
        url: 'https://git.example.com/sub/api/v1/repos/acme/web.app/actions/jobs/3',
        labels: null,
        run_attempt: 0,
        status: 'queued',
        created_at: '2026-03-01T11:00:00Z',
        started_at: '1970-01-01T00:00:00Z',
      },
    ],
  });
  expect(items).toEqual([
    {
      id: '3',
      runAttempt: 1,
      repository: 'acme/web.app',
      labels: [],
      status: 'queued',
      queuedAt: Date.parse('2026-03-01T11:00:00Z'),
      runnerId: undefined,
    },
  ]);
});

test('the server is at the URL of its API, also with a path', () => {
  expect(giteaUrlOf('https://git.example.com/api/v1')).toBe('https://git.example.com');
  expect(giteaUrlOf('https://example.com/git/api/v1')).toBe('https://example.com/git');
});

describe('credentials', () => {
  const credential = {
    server: 'gitea',
    type: 'pat',
    tokenFile: '/token',
    apiUrl: 'https://git.example.com/api/v1',
  };
  const fieldsOf = (more: object): string[] => {
    try {
      parseCredentials({ a: omitUndefined({ ...credential, ...more }) });
      return [];
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error;
      return error.problems.map((problem) => problem.split(':')[0] ?? '');
    }
  };

  test.each<[what: string, more: object, field: string | undefined]>([
    ['a token', {}, undefined],
    ['no address', { apiUrl: undefined }, 'apiUrl'],
    ["GitHub's form of an address", { apiUrl: 'https://git.example.com/api/v3' }, 'apiUrl'],
    ['runner groups', { groups: ['1'] }, 'groups'],
    ['reruns', { reruns: true }, 'reruns'],
    [
      'an App',
      { type: 'app', tokenFile: undefined, appId: 1, installationId: 2, privateKeyFile: '/key' },
      'type',
    ],
  ])('with %s', (_what, more, field) => {
    expect(fieldsOf(more)).toEqual(field === undefined ? [] : [`credentials.a.${field}`]);
  });
});
