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
  test('has both outputs of the command, which are also printed unchanged', async () => {
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

  test('with --merge-output has the output of the command in its order, as it is printed', async () => {
    const file = path();
    const supervised = run(
      file,
      'for i in $(seq 1 2000); do echo "$i out"; echo "$i err" >&2; done',
      '--merge-output',
      '1',
    );
    expect(await supervised.status()).toBe(0);
    const expected = Array.from({ length: 2_000 }, (_, i) => `${i + 1} out\n${i + 1} err\n`).join(
      '',
    );
    expect(readFileSync(file, 'utf8')).toBe(expected);
    expect(supervised.stdout.toString()).toBe(expected);
    expect(supervised.stderr).toBe('');
  });

  test('with --merge-output has all of a large output from a program that expects blocking writes', async () => {
    const file = path();
    const supervised = run(file, 'seq 1 400000; seq 400001 800000 >&2', '--merge-output', '1');
    expect(await supervised.status()).toBe(0);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(lines).toHaveLength(800_000);
    expect(lines.findIndex((line, index) => line !== String(index + 1))).toBe(-1);
  });

  test('with --merge-output in a folder without sockets: exists, with a warning', async () => {
    const file = path();
    const folder = join(bundle.folder, 'x'.repeat(100));
    const supervised = run(
      file,
      'echo out; echo err >&2',
      '--merge-output',
      '1',
      '--run-dir',
      folder,
    );
    expect(await supervised.status()).toBe(0);
    expect(supervised.errors).toEqual([expect.stringMatching(/^failed to merge the outputs/)]);
    expect(readFileSync(file, 'utf8').split('\n')).toEqual(expect.arrayContaining(['out', 'err']));
  });

  test('exists before the command starts, and after the probes', async () => {
    const file = path();
    const supervised = run(file, `test -e '${file}' && echo there`, '--probe-port', '0');
    expect(await supervised.status()).toBe(0);
    expect(readFileSync(file, 'utf8')).toMatch(/^\{.*Probes listen.*\}\nthere\n$/);
  });

  // Between what comes on both ways at once there is no order, not even of lines.
  test.each(['seq 1 400000', 'seq 1 400000 >&2'])(
    'has all of a large output: %s',
    async (script) => {
      const file = path();
      const supervised = run(file, script);
      expect(await supervised.status()).toBe(0);
      const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
      expect(lines).toHaveLength(400_000);
      expect(lines.findIndex((line, index) => line !== String(index + 1))).toBe(-1);
    },
  );

  test("has the supervisor's own lines", async () => {
    const file = path();
    const supervised = run(file, 'echo up; while :; do sleep 0.05; done', '--timeout', '500ms');
    await supervised.status();
    expect(readFileSync(file, 'utf8')).toContain('Process did not finish before');
  });

  test('has everything printed before both are killed', async () => {
    const file = path();
    const supervised = run(file, 'echo up; while kill -0 "$PPID" 2>/dev/null; do sleep 0.05; done');
    await supervised.printed('up');
    await until('the line', () => readFileSync(file, 'utf8').includes('up\n'));
    supervised.signal('SIGKILL');
    expect(await supervised.ended()).toEqual({ code: null, signal: 'SIGKILL' });
    expect(readFileSync(file, 'utf8')).toContain('up\n');
  });

  test('on a full disk: lacks lines, with one warning and in the record', async () => {
    const marker = join(mkdtempSync(join(bundle.folder, 'full-')), 'finished.json');
    const supervised = run('/dev/full', 'echo one; sleep 0.1; echo two', '--marker', marker);
    expect(await supervised.status()).toBe(0);
    expect(supervised.stdout.toString()).toBe('one\ntwo\n');
    expect(supervised.errors).toEqual([
      expect.stringMatching(/^failed to write the log file, .*ENOSPC/),
    ]);
    expect(JSON.parse(readFileSync(marker, 'utf8'))).toMatchObject({ logTruncated: true });
  });

  test('that cannot be opened: nothing starts, with the reason', async () => {
    const supervised = run('/no/such/folder/build-log.txt', 'echo never');
    expect(await supervised.status()).toBe(127);
    expect(supervised.stderr).toContain('/no/such/folder/build-log.txt');
    expect(supervised.stdout.toString()).toBe('');
  });
});

test('without a log file --merge-output gives the command one descriptor for both', async () => {
  const supervised = new SupervisedProcess(bundle.file, 'bare', [
    '--merge-output',
    '1',
    '--',
    'sh',
    '-c',
    'echo out; echo err >&2; echo end',
  ]).reading();
  expect(await supervised.status()).toBe(0);
  expect(supervised.stdout.toString()).toBe('out\nerr\nend\n');
  expect(supervised.stderr).toBe('');
});
