import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'second-try-'))));
afterEach(async () => await rm(folder, { recursive: true }));

/** One run: the statuses of each file's tests; none where it did not even load. */
type Run = Readonly<Record<string, readonly ('passed' | 'failed' | 'pending')[]>>;

async function write(name: string, run: Run): Promise<string> {
  const testResults = Object.entries(run).map(([file, statuses]) => ({
    name: resolve(file),
    status: statuses.length === 0 || statuses.includes('failed') ? 'failed' : 'passed',
    assertionResults: statuses.map((status) => ({ status })),
  }));
  const path = join(folder, name);
  await writeFile(path, JSON.stringify({ testResults, startTime: 1 }));
  return path;
}

const secondTry = (...args: string[]): string[] =>
  execFileSync(process.execPath, ['tools/ci/secondTry.mjs', ...args], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);

test.each<[what: string, Run, string[]]>([
  ['none failed', { a: ['passed'], b: ['pending'] }, []],
  [
    'those that failed, and what did not load',
    { a: ['passed', 'failed'], b: ['passed'], c: [] },
    ['a', 'c'],
  ],
  [
    'too many for flakes',
    { a: ['failed'], b: ['failed'], c: ['failed'], d: ['failed'], e: [] },
    [],
  ],
])('files to be run once more: %s', async (_what, run, files) => {
  expect(secondTry('files', await write('first', run))).toEqual(files);
});

test('the second try counts; what passed only then is named, and what failed again stays failed', async () => {
  const first = await write('first', {
    a: ['passed', 'failed'],
    b: ['passed', 'pending'],
    c: [],
    d: ['failed'],
  });
  const second = await write('second', { a: ['passed', 'passed'], c: [], d: ['passed', 'failed'] });
  expect(secondTry('merge', first, second)).toEqual([
    'FLAKE a passed only when it was run again, by itself',
  ]);
  expect(JSON.parse(await readFile(first, 'utf8'))).toMatchObject({
    startTime: 1,
    numPassedTests: 4,
    numFailedTests: 1,
    numPendingTests: 1,
    numRuntimeErrorTestSuites: 1,
  });
});
