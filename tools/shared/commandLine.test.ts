/** The command lines of all tools: `--help`, and the rejection of unknown options. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { InvalidArgumentError } from 'commander';
import { repeated, wholeNumber } from './commandLine.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const TOOLS = [
  'tools/bench/main.ts',
  'tools/chaos/main.ts',
  'tools/chart/main.ts',
  'tools/ci/report.mjs',
  'tools/ci/secondTry.mjs',
  'tools/fuzz/main.ts',
  'tools/lab/main.ts',
  'tools/model/main.ts',
  'tools/mutation/main.ts',
  'tools/release/main.ts',
  'tools/release/writePackages.ts',
  'tools/schemas/main.ts',
  'tools/simulator/main.ts',
  'tools/supplyChain/audit.ts',
  'tools/supplyChain/writeLicenses.ts',
  'test/nightly/compose/run.ts',
  'test/replay/record.ts',
];

function run(script: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    cwd: PROJECT,
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

// Each tool takes a second or more to start, so not every one is started twice.
test.each(['tools/lab/main.ts', 'tools/ci/report.mjs'])('%s prints its help', (script) => {
  const { status, output } = run(script, '--help');
  expect(output).toMatch(/^Usage: /);
  expect(status).toBe(0);
});

test.each(TOOLS)('%s rejects an unknown option before it does anything', (script) => {
  const { status, output } = run(script, '--no-such-option');
  expect(output).toMatch(/^error: unknown option '--no-such-option'/);
  expect(output).toContain('--help');
  expect(status).toBe(1);
});

test('npm run test:unit prints its help, and leaves other options to jest', () => {
  expect(run('tools/test/main.ts', 'unit', '--help')).toMatchObject({
    status: 0,
    output: expect.stringMatching(/^Usage: npm run test:unit/),
  });
  expect(run('tools/test/main.ts', 'unit', '--noSuchOption')).toMatchObject({ status: 1 });
});

test('a reader that closes the pipe stops neither the work of a tool nor its error', async () => {
  const script = `
    import { writeSync } from 'node:fs';
    import { createCommand, runCommand } from '${PROJECT}tools/shared/commandLine.ts';
    const tool = createCommand('tool', '').action(async () => {
      for (let line = 0; line < 5; line++) {
        process.stdout.write('line\\n');
        process.stderr.write('note\\n');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      writeSync(3, 'work done');
      throw new Error('failed');
    });
    await runCommand(tool);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  child.stdout?.destroy();
  child.stderr?.destroy();
  let work = '';
  child.stdio[3]?.on('data', (data: Buffer) => (work += data.toString()));
  await once(child, 'close');
  expect({ work, code: child.exitCode }).toEqual({ work: 'work done', code: 1 });
});

describe('values of options', () => {
  test.each(['', ' ', 'x', '1.5', '0', '11', '-1', 'Infinity'])('"%s" is not 1 to 10', (text) => {
    expect(() => wholeNumber({ min: 1, max: 10 })(text)).toThrow(InvalidArgumentError);
  });

  test('a whole number is parsed', () => {
    expect(wholeNumber({ min: 1, max: 10 })('10')).toBe(10);
    expect(wholeNumber({ min: 0 })('2000000')).toBe(2_000_000);
  });

  test('a repeated option collects its values, and rejects others', () => {
    const parse = repeated(['a', 'b']);
    expect(parse('b', parse('a', undefined))).toEqual(['a', 'b']);
    expect(() => parse('c', undefined)).toThrow(InvalidArgumentError);
  });
});
