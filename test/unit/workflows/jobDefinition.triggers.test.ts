import { describe, expect, test } from '@jest/globals';
import type { RepositoryChange } from '../../../core/contract/index.ts';
import { changeText, decideChange, readChange } from '../../../workflows/jobDefinition/triggers.ts';

const SPEC = { name: 'unit', repository: 'Acme/Web', push: {}, pullRequest: {}, untrusted: false };
const AT = '2026-11-22T10:00:00Z';
const PUSH: RepositoryChange = {
  event: 'push',
  commit: 'a1',
  ref: 'refs/heads/main',
  branch: 'main',
  paths: ['src/a.ts', 'docs/a.md'],
  at: AT,
};
const TAG: RepositoryChange = { event: 'push', commit: 'a1', ref: 'refs/tags/v1', at: AT };
const PULL: RepositoryChange = {
  event: 'pull_request',
  commit: 'b2',
  ref: 'refs/pull/7/merge',
  branch: 'main',
  pullRequest: 7,
  trusted: true,
  at: AT,
};
const { trusted: _word, ...STRANGERS } = PULL;

const runs = { kind: 'run' };
const leaves = (why: string): object => ({ kind: 'leave', why: expect.stringContaining(why) });

describe('what a change means', () => {
  test.each<
    [what: string, spec: object, change: RepositoryChange, asked: boolean, decision: object]
  >([
    [
      'a push',
      {},
      PUSH,
      false,
      {
        kind: 'run',
        group: 'job-group:unit:acme/web:main:push',
        source: { event: 'push', commit: 'a1', ref: 'refs/heads/main' },
      },
    ],
    ['a push, only pull requests start it', { push: undefined }, PUSH, false, { kind: 'ignore' }],
    [
      'a pull request',
      {},
      PULL,
      false,
      {
        kind: 'run',
        group: 'job-group:unit:acme/web:main:pr-7',
        source: {
          event: 'pull_request',
          commit: 'b2',
          ref: 'refs/pull/7/merge',
          base: 'main',
          pullRequest: 7,
        },
      },
    ],
    [
      'a pull request, only pushes start it',
      { pullRequest: undefined },
      PULL,
      false,
      { kind: 'ignore' },
    ],
    ["an outsider's", {}, STRANGERS, false, leaves("an outsider's")],
    [
      "an outsider's, and the job is for those",
      { untrusted: true },
      STRANGERS,
      false,
      { kind: 'run', source: { event: 'pull_request', pullRequest: 7, untrusted: true } },
    ],
    [
      'of somebody who belongs there, and the job is for outsiders, too',
      { untrusted: true },
      PULL,
      false,
      {
        kind: 'run',
        source: {
          event: 'pull_request',
          commit: 'b2',
          ref: 'refs/pull/7/merge',
          base: 'main',
          pullRequest: 7,
        },
      },
    ],
    ['a branch that matches', { push: { branches: ['main'] } }, PUSH, false, runs],
    [
      'another branch',
      { push: { branches: ['release/**'] } },
      PUSH,
      false,
      leaves('branches: main'),
    ],
    [
      'the base of a pull request',
      { pullRequest: { branches: ['release/**'] } },
      PULL,
      false,
      leaves('branches: main'),
    ],
    [
      'a tag',
      {},
      TAG,
      false,
      {
        kind: 'run',
        group: 'job-group:unit:acme/web:refs/tags/v1:push',
        source: { event: 'push', commit: 'a1', ref: 'refs/tags/v1' },
      },
    ],
    ['a tag, where branches are named', { push: { branches: ['**'] } }, TAG, false, leaves('tag')],
    ['a tag, where paths are named', { push: { paths: ['src/**'] } }, TAG, false, runs],
    ['one path that matches', { push: { paths: ['src/**'] } }, PUSH, false, runs],
    [
      'no path that matches',
      { push: { paths: ['**', '!src/**', '!docs/**'] } },
      PUSH,
      false,
      leaves('paths'),
    ],
    [
      'a push of which the paths are not known',
      { push: { paths: ['src/**'] } },
      { ...PUSH, paths: undefined } as never,
      false,
      runs,
    ],
    [
      'a pull request with paths',
      { pullRequest: { paths: ['src/**'] } },
      PULL,
      false,
      { kind: 'askPaths', pullRequest: 7 },
    ],
    ['asked, and not known', { pullRequest: { paths: ['src/**'] } }, PULL, true, runs],
    [
      'asked, and none matches',
      { pullRequest: { paths: ['src/**'] } },
      { ...PULL, paths: ['docs/a'] },
      true,
      leaves('paths'),
    ],
    [
      "an outsider's is not asked for",
      { pullRequest: { paths: ['src/**'] } },
      STRANGERS,
      false,
      leaves("an outsider's"),
    ],
  ])('%s', (_what, spec, change, asked, decision) => {
    expect(decideChange({ ...SPEC, ...spec }, change, asked)).toMatchObject(decision);
  });

  test("an outsider's run says so, and another does not", () => {
    expect(decideChange({ ...SPEC, untrusted: true }, PULL, false)).not.toHaveProperty(
      'source.untrusted',
    );
    expect(decideChange(SPEC, PUSH, false)).not.toHaveProperty('source.untrusted');
  });
});

describe('a change comes from outside', () => {
  test.each([PUSH, TAG, PULL, STRANGERS])('%j is read', (change) =>
    expect(readChange(change)).toEqual(change),
  );
  test.each<[string, object | undefined]>([
    ['nothing', undefined],
    ['another event', { ...PUSH, event: 'release' }],
    ['a commit that is none', { ...PUSH, commit: 'a b' }],
    ['a ref that is none', { ...PUSH, ref: 'refs/heads/a:b' }],
    ['a branch that is none', { ...PUSH, branch: 'a b' }],
    ['a push of a pull request', { ...PUSH, pullRequest: 7 }],
    ['a pull request without its number', { ...PULL, pullRequest: undefined }],
    ['a pull request without a branch', { ...PULL, branch: undefined }],
    ['no time', { ...PUSH, at: 'yesterday' }],
    ['paths that are none', { ...PUSH, paths: [7] }],
  ])('%s is not', (_what, change) =>
    expect(readChange(change as RepositoryChange)).toBeUndefined(),
  );
  test('what is not `true` is no trust', () =>
    expect(readChange({ ...PULL, trusted: 'yes' as never })).not.toHaveProperty('trusted'));
  test('in words', () => expect(changeText(PULL)).toBe('pull request of b2 (refs/pull/7/merge)'));
});
