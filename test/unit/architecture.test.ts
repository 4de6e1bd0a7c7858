/** The walks of docs/architecture.md and the places that CONTRIBUTING.md names lead through files that exist. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
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

  test("a webhook's event passes 12 files at most until its runner is started", () => {
    const visited = files.get("From a webhook's event to the started runner") ?? [];
    expect(visited[0]).toBe('worker/webhook/webhook.ts');
    expect(visited.at(-1)).toBe('activities/runnerSet/startRunners.ts');
    expect(visited.length).toBeLessThanOrEqual(12);
  });

  test('and each of them is imported by another, but where a signal, an activity or a port lies between them', () => {
    const visited = files.get("From a webhook's event to the started runner") ?? [];
    const imported = (file: string): boolean =>
      visited.some((other) => other !== file && read(other).includes(`/${basename(file)}'`));
    expect(visited.filter((file) => !imported(file))).toEqual([
      'worker/webhook/webhook.ts',
      'worker/webhook/servers/github/gitHubDeliveries.ts',
      'workflows/runnerSet/handlers.ts',
      'activities/runnerSet/startRunners.ts',
    ]);
  });
});
