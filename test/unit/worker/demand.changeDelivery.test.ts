import { createRequire } from 'node:module';
import { describe, expect, test } from '@jest/globals';
import { readDelivery } from '../../../worker/webhook/webhookDelivery.ts';

/** GitHub's own examples. */
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as {
  name: string;
  examples: Record<string, unknown>[];
}[];
const examplesOf = (name: string): Record<string, unknown>[] =>
  examples.find((each) => each.name === name)?.examples ?? [];

const NOW = Date.parse('2026-03-01T12:00:00Z');
const AT = '2026-03-01T11:00:00Z';
const SHA = 'a'.repeat(40);
const read = (event: string, body: unknown): ReturnType<typeof readDelivery> =>
  readDelivery(event, body, NOW);
const push = (more: object = {}, repository: object = {}): object => ({
  ref: 'refs/heads/main',
  after: SHA,
  before: 'b'.repeat(40),
  deleted: false,
  forced: false,
  commits: [{ added: ['a'], removed: ['b'], modified: ['c', 'a'] }],
  repository: { full_name: 'acme/web', pushed_at: Date.parse(AT) / 1_000, ...repository },
  ...more,
});
const pull = (more: object = {}, action = 'opened'): object => ({
  action,
  number: 7,
  pull_request: {
    number: 7,
    updated_at: AT,
    draft: false,
    author_association: 'MEMBER',
    head: { sha: SHA, ref: 'fix', repo: { full_name: 'acme/web' } },
    base: { ref: 'main', sha: 'c'.repeat(40) },
    ...more,
  },
  repository: { full_name: 'acme/web' },
});

test("GitHub's own examples are read, whatever they tell", () => {
  const kinds = (name: string): string[] =>
    examplesOf(name).map(
      (example) => readDelivery(name, example, Date.parse('2019-05-15T15:20:00Z')).kind,
    );
  expect(kinds('push').length).toBeGreaterThan(2);
  expect(kinds('pull_request').length).toBeGreaterThan(5);
  for (const name of ['push', 'pull_request']) expect(kinds(name)).not.toContain('malformed');
  expect(kinds('push')).toContain('change');
  expect(kinds('pull_request')).toContain('change');
});

describe('a push', () => {
  test('to a branch', () => {
    expect(read('push', push())).toEqual({
      kind: 'change',
      news: {
        repository: 'acme/web',
        change: {
          event: 'push',
          commit: SHA,
          ref: 'refs/heads/main',
          branch: 'main',
          paths: ['a', 'b', 'c'],
          at: '2026-03-01T11:00:00.000Z',
        },
      },
    });
  });

  test('of a tag has no branch', () => {
    expect(read('push', push({ ref: 'refs/tags/v1' }))).not.toHaveProperty('news.change.branch');
  });

  test.each<[string, object]>([
    ['by force', { forced: true }],
    ['of no commits', { commits: [] }],
    [
      'of more commits than are told',
      {
        commits: Array.from({ length: 2_048 }, () => ({ added: ['a'], removed: [], modified: [] })),
      },
    ],
    ['of commits without files', { commits: [{ id: 'x' }] }],
    [
      'of very many files',
      {
        commits: [
          {
            added: Array.from({ length: 2_000 }, (_, n) => `${'x'.repeat(100)}${n}`),
            removed: [],
            modified: [],
          },
        ],
      },
    ],
    ['that tells no commits', { commits: null }],
  ])('%s does not say which files are different', (_what, more) => {
    expect(read('push', push(more))).toMatchObject({ kind: 'change' });
    expect(read('push', push(more))).not.toHaveProperty('news.change.paths');
  });

  test.each<[string, object]>([
    ['deleted', { deleted: true }],
    ['without a commit', { after: '0'.repeat(40) }],
  ])('%s is nothing to run', (_what, more) => {
    expect(read('push', push(more))).toEqual({ kind: 'ignored', why: 'other_action' });
  });
});

describe('a pull request', () => {
  test.each(['opened', 'synchronize', 'reopened'])('%s is a change, a draft too', (action) => {
    expect(read('pull_request', pull({ draft: true }, action))).toEqual({
      kind: 'change',
      news: {
        repository: 'acme/web',
        change: {
          event: 'pull_request',
          commit: SHA,
          ref: 'refs/pull/7/merge',
          branch: 'main',
          pullRequest: 7,
          trusted: true,
          at: '2026-03-01T11:00:00.000Z',
        },
      },
    });
  });

  test.each(['closed', 'edited', 'labeled', 'ready_for_review', 'converted_to_draft'])(
    '%s is none',
    (action) => {
      expect(read('pull_request', pull({}, action))).toEqual({
        kind: 'ignored',
        why: 'other_action',
      });
    },
  );

  const head = (full_name: string): object => ({ head: { sha: SHA, repo: { full_name } } });
  test.each<[what: string, more: object, trusted: boolean]>([
    ['of an owner', { author_association: 'OWNER' }, true],
    ['of a member', { author_association: 'MEMBER' }, true],
    ['of a collaborator', { author_association: 'COLLABORATOR' }, true],
    ['of a contributor', { author_association: 'CONTRIBUTOR' }, false],
    ['of a first-time contributor', { author_association: 'FIRST_TIME_CONTRIBUTOR' }, false],
    ['of a mannequin', { author_association: 'MANNEQUIN' }, false],
    ['of nobody', { author_association: 'NONE' }, false],
    ['that does not say whose', { author_association: undefined }, false],
    ['in other words', { author_association: 'member' }, false],
    ["from a member's fork", head('mona/web'), false],
    ['from another repository of the owner', head('acme/other'), false],
    ['from a fork that is gone', { head: { sha: SHA, repo: null } }, false],
    ['from where it does not say', { head: { sha: SHA } }, false],
  ])('%s', (_what, more, trusted) => {
    const change = read('pull_request', pull(more));
    if (trusted) expect(change).toHaveProperty('news.change.trusted', true);
    else expect(change).not.toHaveProperty('news.change.trusted');
  });
});

test.each<[string, string, object, string]>([
  ['of last week', 'push', push({}, { pushed_at: NOW / 1_000 - 5 * 86_400 }), 'stale'],
  ['of last week', 'pull_request', pull({ updated_at: '2026-02-22T11:00:00Z' }), 'stale'],
  ['without a time', 'push', push({}, { pushed_at: null }), 'change'],
  ['in ISO 8601', 'push', push({}, { pushed_at: AT }), 'change'],
  ['at a time that is none', 'push', push({}, { pushed_at: 1e300 }), 'change'],
  ['with a commit that is none', 'push', push({ after: 'main' }), 'malformed'],
  ['with a ref that is none', 'push', push({ ref: 'refs/heads/a b' }), 'malformed'],
  ['without a head', 'pull_request', pull({ head: undefined }), 'malformed'],
  ['without a base', 'pull_request', pull({ base: {} }), 'malformed'],
  ['of no repository', 'push', { ...push(), repository: undefined }, 'malformed'],
  ['a star', 'star', push(), 'ignored'],
])('%s: %s', (_what, event, body, kind) => {
  expect(read(event, body).kind).toBe(kind);
});
