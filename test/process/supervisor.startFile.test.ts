/** What tells a container beside the supervisor's that the command has started. */
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { SupervisedProcess, supervisorBundle } from '../support/supervisedProcess.ts';
import { until } from '../support/until.ts';

const bundle = await supervisorBundle();
afterAll(() => bundle.remove());

const TICK = 'while :; do sleep 0.05; done';
const folder = (): string => mkdtempSync(join(bundle.folder, 'run-'));
const run = (args: readonly string[]): SupervisedProcess =>
  new SupervisedProcess(bundle.file, 'bare', args);
const marker = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

describe('the start file', () => {
  test('exists while the command runs', async () => {
    const path = join(folder(), 'started.json');
    const supervised = run(['--start-file', path, '--', 'sh', '-c', TICK]).reading();
    await until('the note', () => existsSync(path));
    expect(marker(path)).toEqual({ startedAt: expect.stringMatching(/^\d{4}-.*Z$/) });
    supervised.signal('SIGTERM');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test.each([
    ['ends at once', 'exit 3', { code: 3, signal: null }],
    ['kills itself at once', 'kill -9 $$', { code: null, signal: 'SIGKILL' }],
  ])('exists also for a command that %s', async (_what, script, end) => {
    const dir = folder();
    const [note, path] = [join(dir, 'started.json'), join(dir, 'finished.json')];
    const supervised = run([
      '--start-file',
      note,
      '--marker',
      path,
      '--',
      'sh',
      '-c',
      script,
    ]).reading();
    expect(await supervised.ended()).toEqual(end);
    expect(marker(note)).toEqual({ startedAt: (marker(path) as { startedAt: string }).startedAt });
  });

  test('does not exist for a command that could not start', async () => {
    const note = join(folder(), 'started.json');
    expect(await run(['--start-file', note, '--', '/no/such/program']).reading().status()).toBe(
      127,
    );
    expect(existsSync(note)).toBe(false);
  });
});
