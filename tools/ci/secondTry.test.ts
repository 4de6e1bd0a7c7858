import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readQuarantine } from './quarantine.mjs';

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

async function quarantine(text: string): Promise<string> {
  const path = join(folder, 'quarantine');
  await writeFile(path, text);
  return path;
}

test.each<[what: string, Run, string[]]>([
  ['none failed', { a: ['passed'], b: ['pending'] }, []],
  [
    'those that failed, and what did not load',
    { a: ['passed', 'failed'], b: ['passed'], c: [] },
    ['a', 'c'],
  ],
  ['not what is not quarantined', { a: ['failed'], b: ['failed'], d: ['failed'] }, ['a', 'b']],
])('files to be run once more: %s', async (_what, run, files) => {
  const list = await quarantine(
    '# why\n2026-01-02  a  slow\n2026-01-02  b  slow\n2026-01-02  c  x\n',
  );
  expect(secondTry('files', await write('first', run), list)).toEqual(files);
});

test('a line of the list without a reason is an error', async () => {
  const list = await quarantine('2026-01-02  a\n');
  const first = await write('first', { a: ['failed'] });
  expect(() => secondTry('files', first, list)).toThrow('must be a date, a test file and a reason');
});

test('the files of the list are there', () => {
  const missing = readQuarantine('.ci/quarantine').filter(({ file }) => !existsSync(file));
  expect(missing).toEqual([]);
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
