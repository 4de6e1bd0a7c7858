/** The file to which a supervisor copies everything that is printed. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { SupervisedProcess, supervisorBundle } from '../support/supervisedProcess.ts';
import { until } from '../support/until.ts';

const bundle = await supervisorBundle();
afterAll(() => bundle.remove());

const path = (): string => join(mkdtempSync(join(bundle.folder, 'log-')), 'build-log.txt');
const run = (file: string, script: string, ...options: string[]): SupervisedProcess =>
  new SupervisedProcess(bundle.file, 'bare', [
    '--log-file',
    file,
    ...options,
    '--',
    'sh',
    '-c',
    script,
  ]).reading();

describe('the log file', () => {
  test('has what the command prints, on either way, and what is printed is what it was', async () => {
    const file = path();
    // One after the other: between the two ways there is no order.
    const until = (text: string): string => `until grep -q ${text} '${file}'; do sleep 0.05; done`;
    const supervised = run(
      file,
      `echo out; ${until('out')}; echo err >&2; ${until('err')}; printf end`,
    );
    expect(await supervised.status()).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe('out\nerr\nend');
    expect(supervised.stdout.toString()).toBe('out\nend');
    expect(supervised.stderr).toBe('err\n');
  });

  test('is there before the command, and after the probes', async () => {
    const file = path();
    const supervised = run(file, `test -e '${file}' && echo there`, '--probe-port', '0');
    expect(await supervised.status()).toBe(0);
    expect(readFileSync(file, 'utf8')).toMatch(/^\{.*Probes listen.*\}\nthere\n$/);
  });

  // Between what comes on both ways at once there is no order, not even of lines.
  test.each(['seq 1 400000', 'seq 1 400000 >&2'])('has a lot, whole: %s', async (script) => {
    const file = path();
    const supervised = run(file, script);
    expect(await supervised.status()).toBe(0);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(lines).toHaveLength(400_000);
    expect(lines.findIndex((line, index) => line !== String(index + 1))).toBe(-1);
  });

  test("has the supervisor's own lines", async () => {
    const file = path();
    const supervised = run(file, 'echo up; while :; do sleep 0.05; done', '--timeout', '500ms');
    await supervised.status();
    expect(readFileSync(file, 'utf8')).toContain('Process did not finish before');
  });

  test('has what was printed by the time when both are killed', async () => {
    const file = path();
    const supervised = run(file, 'echo up; while kill -0 "$PPID" 2>/dev/null; do sleep 0.05; done');
    await supervised.printed('up');
    await until('the line', () => readFileSync(file, 'utf8').includes('up\n'));
    supervised.signal('SIGKILL');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGKILL' });
    expect(readFileSync(file, 'utf8')).toContain('up\n');
  });

  test('that cannot be opened: nothing is run, and it says why', async () => {
    const supervised = run('/no/such/folder/build-log.txt', 'echo never');
    expect(await supervised.status()).toBe(127);
    expect(supervised.stderr).toContain('/no/such/folder/build-log.txt');
    expect(supervised.stdout.toString()).toBe('');
  });
});
