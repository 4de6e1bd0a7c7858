/** The files that docs/architecture.md and CONTRIBUTING.md name exist. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { PROJECT } from '../support/markdown.ts';

const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');
const ROOMS =
  /`((?:core|workflows|activities|worker|supervisor|uploader|tools|demo|deploy|test|docs)\/[\w./-]*)`/g;

test.each(['docs/architecture.md', 'CONTRIBUTING.md'])(
  'every file and folder of the project that %s names exists',
  (page) => {
    const named = [...read(page).matchAll(ROOMS)]
      .map(([, path = '']) => path)
      .filter((path) => !path.includes('NAME'));
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((path) => !existsSync(join(PROJECT, path)))).toEqual([]);
  },
);

describe('the walks of docs/architecture.md', () => {
  const [, walks = ''] = /^## Walks\n([^]*?)^## /m.exec(read('docs/architecture.md')) ?? [];
  /** The file that each numbered line begins with, by walk. */
  const files = new Map(
    walks
      .split(/^### /m)
      .slice(1)
      .map((walk) => [
        walk.split('\n')[0] ?? '',
        [...walk.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = '']) => file),
      ]),
  );

  test.each([...files])('%s: visits no file twice', (_walk, visited) => {
    expect(visited).toEqual([...new Set(visited)]);
  });

  test.each([...files])('%s: visits at most ten files, and names no other', (walk, visited) => {
    expect(visited.length).toBeLessThanOrEqual(10);
    const text = walks.split(/^### /m).find((part) => part.startsWith(walk)) ?? '';
    const named = [...text.matchAll(/`([\w./-]+\.ts)`/g)].map(([, file = '']) => file);
    expect(named.filter((file) => !visited.includes(file))).toEqual([]);
  });

  test("a webhook's event ends at the activity that starts the runner", () => {
    const visited = files.get("From a webhook's event to the started runner") ?? [];
    expect(visited.at(-1)).toBe('activities/runnerSet/startRunners.ts');
    expect(visited.filter((file) => !visited.some((other) => leadsTo(other, file)))).toEqual([
      'worker/webhook/webhook.ts', // an HTTP request
      'workflows/runnerSet/handlers.ts', // a signal
      'activities/runnerSet/startRunners.ts', // an activity
    ]);
  });
});

/** Files that a file imports. */
const importsOf = (file: string): string[] =>
  [...read(file).matchAll(/from '(\.[^']+)'/g)].map(([, path = '']) => join(dirname(file), path));

/** Whether a file imports the other, or a helper that does. */
const leadsTo = (file: string, other: string): boolean =>
  file !== other &&
  importsOf(file).some((each) => each === other || importsOf(each).includes(other));
