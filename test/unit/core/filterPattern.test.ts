import { expect, test } from '@jest/globals';
import { matchesPattern, patternError } from '../../../core/domain/filterPattern.ts';

/** GitHub's own examples: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#filter-pattern-cheat-sheet */
const EXAMPLES: [pattern: string, matches: string[], others: string[]][] = [
  ['feature/*', ['feature/my-branch', 'feature/your-branch'], ['feature/a/b', 'feature']],
  [
    'feature/**',
    ['feature/beta-a/my-branch', 'feature/your-branch', 'feature/mona/the/octocat'],
    ['features/a'],
  ],
  ['main', ['main'], ['main2', 'Main', 'a/main']],
  ['releases/mona-the-octocat', ['releases/mona-the-octocat'], []],
  ['*', ['main', 'releases', '.hidden'], ['all/the/branches']],
  ['**', ['all/the/branches', 'every/tag', 'main'], []],
  ['*feature', ['mona-feature', 'feature', 'ver-10-feature'], ['a/feature']],
  ['v2*', ['v2', 'v2.0', 'v2.9'], ['v1', 'v2/a']],
  ['v[12].[0-9]+.[0-9]+', ['v1.10.1', 'v2.0.0'], ['v3.0.0', 'v1.10', 'v1.x.1']],
  ['**.js', ['index.js', 'js/index.js', 'src/js/app.js'], ['index.jsx']],
  ['*.jsx?', ['page.js', 'page.jsx'], ['src/page.js', 'page.jsxx']],
  ['docs/*', ['docs/README.md', 'docs/file.txt'], ['docs/a/b.md']],
  ['docs/**', ['docs/README.md', 'docs/mona/octocat.txt'], ['doc/a']],
  [
    'docs/**/*.md',
    ['docs/README.md', 'docs/mona/hello-world.md', 'docs/a/markdown/file.md'],
    ['docs/a.txt', 'docsREADME.md'],
  ],
  [
    '**/docs/**',
    ['docs/hello.md', 'dir/docs/my-file.txt', 'space/docs/plan/space.doc'],
    ['mydocs/a'],
  ],
  ['**/README.md', ['README.md', 'js/README.md'], ['MYREADME.md']],
  ['**/*src/**', ['a/src/app.js', 'my-src/code/js/app.js'], ['srcs/a']],
  ['**/*-post.md', ['my-post.md', 'path/their-post.md'], ['post.md']],
  [
    '**/migrate-*.sql',
    ['migrate-10909.sql', 'db/migrate-v1.0.sql', 'db/sept/migrate-v1.sql'],
    ['migrate.sql'],
  ],
  ['releases/**-alpha', ['releases/beta/3-alpha', 'releases/10-alpha'], ['releases/alpha']],
  ['\\[a\\]', ['[a]'], ['a']],
  ['a.b', ['a.b'], ['axb']],
  ['ä?b', ['äb', 'b'], ['ab']],
];

test.each(EXAMPLES)('%s', (pattern, matches, others) => {
  expect(patternError(pattern)).toBeUndefined();
  expect(matches.filter((text) => !matchesPattern(pattern, text))).toEqual([]);
  expect(others.filter((text) => matchesPattern(pattern, text))).toEqual([]);
});

test.each([
  ['', 'is empty'],
  ['?a', 'begin with'],
  ['!a', 'begin with'],
  ['[a', 'without its "]"'],
])('%j is not a valid pattern', (pattern, fault) => {
  expect(patternError(pattern)).toContain(fault);
});

test("matching an outsider's path takes little time with every pattern", () => {
  const started = performance.now();
  expect(matchesPattern('**a**a**a**a**a**a**a**a**b', 'a'.repeat(4_096))).toBe(false);
  expect(performance.now() - started).toBeLessThan(1_000);
  expect(matchesPattern('**', 'a'.repeat(4_097))).toBe(false);
});
