import { describe, expect, test } from '@jest/globals';
import { runProgram } from '../../cli/installation/demo.ts';
import { runCli, CliProcess } from '../support/cli.ts';

describe('help and usage', () => {
  test.each([
    ['--help'],
    ['-h'],
    ['help'],
    ['--version'],
    ['runner', 'start', '--help'],
    ['run', '--help'],
    ['runner', 'cancel', '--help'],
    ['help', 'doctor'],
  ])('%j prints to stdout with status 0', async (...args) => {
    const { status, stdout, stderr } = await runCli(args);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).not.toBe('');
  });

  test('the help documents every exit status and has examples', async () => {
    const { stdout } = await runCli(['--help']);
    for (const status of [0, 1, 2, 3, 4, 5, 129, 130, 143])
      expect(stdout).toMatch(new RegExp(`^ .*\\b${status}\\b`, 'm'));
    expect(stdout).toContain('$ holdfast run --repo');
  });

  test.each<[string[], RegExp]>([
    [['runer'], /unknown command 'runer'.*Did you mean run(ner)?\?/],
    [['runner', 'strat'], /unknown command 'strat'.*Did you mean start\?/],
    [['runner', 'list', '--stat'], /unknown option '--stat'/],
    [['runner', 'get'], /missing required argument 'id'/],
    [
      ['runner', 'cancel', 'x', '--mode', 'kill'],
      /argument 'kill' is invalid. Allowed choices are drain, stop, force/,
    ],
    [['runner', 'drain'], /--set or --query/],
    [['runner', 'drain', 'x', '--set', 's'], /--set or --query/],
    [['runner', 'list', '--limit', '0'], /--limit: "0"/],
    [['runner', 'logs', 'x', '--tail', 'few'], /--tail: "few"/],
    [['runner', 'list', '--phase', 'Sleeping'], /--phase: "Sleeping".* Requested, /],
    [['run', '--attach', 'x', '--org', 'acme'], /--attach: /],
    [['run', '--attach', 'x', '--no-restart'], /--attach: /],
    [['pod-policy'], /required option '--service-account/],
    [
      ['pod-policy', '--service-account', 'worker'],
      /--service-account: "worker" is not namespace\/name/,
    ],
    [['runner', 'get', 'x', '--address', 'http://x'], /--address: "http:\/\/x"/],
  ])('%j is a usage error: status 2, one line', async (args, message) => {
    const { status, stdout, stderr } = await runCli(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    const json = await runCli([...args, '--json']);
    expect({ status: json.status, stdout: json.stdout }).toEqual({ status: 2, stdout: '' });
    expect(JSON.parse(json.stderr)).toMatchObject({
      error: { code: 'usage', message: expect.stringMatching(message) },
    });
  });

  test('no command, and a group without one: the help, on stderr, with status 2', async () => {
    for (const args of [[], ['runner']]) {
      const { status, stdout, stderr } = await runCli(args);
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      expect(stderr).toContain('Usage: holdfast');
    }
  });
});

/** The process prints the loaded packages at its end. The output of NODE_DEBUG gets lost when a process ends. */
const TELLS_PACKAGES = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(
    "import { writeSync } from 'node:fs'; import { createRequire } from 'node:module'; const { cache } = createRequire(process.cwd() + '/'); process.on('exit', () => writeSync(2, [...new Set(Object.keys(cache).map((path) => /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(path)?.[1]))].join(' ')));",
  )}`,
};

test('--help loads no Temporal SDK', async () => {
  const run = new CliProcess(['--help'], TELLS_PACKAGES);
  expect((await run.exited).code).toBe(0);
  expect(run.stderr).toContain('commander');
  expect(run.stderr).not.toContain('@temporalio');
  // The same check of a command that needs the SDK finds it.
  const using = new CliProcess(['runner', 'list', '--address', 'x:y'], TELLS_PACKAGES);
  expect((await using.exited).code).toBe(2);
  expect(using.stderr).toContain('@temporalio');
});

test('nothing listens at the address: status 4 within seconds, one line with the setting and the fix', async () => {
  const started = performance.now();
  const { status, stdout, stderr } = await runCli(['runner', 'list', '--address', '127.0.0.1:1']);
  expect(performance.now() - started).toBeLessThan(8_000);
  expect({ status, stdout }).toEqual({ status: 4, stdout: '' });
  expect(stderr).toMatch(
    /^error: cannot reach Temporal at 127\.0\.0\.1:1 \(from --address\): .*set --address, TEMPORAL_ADDRESS or --profile.*\n$/,
  );
});

describe('the demo is a separate program', () => {
  test.each([
    ['process.exit(7)', 7],
    ["process.exit(process.argv[1] === '--json' && process.argv[2] === '-- x' ? 0 : 9)", 0],
    ["process.kill(process.pid, 'SIGTERM')", 143],
  ])('%s: its arguments and exit status are passed on', async (program, status) => {
    expect(await runProgram(process.execPath, ['-e', program, '--', '--json', '-- x'])).toBe(
      status,
    );
  });

  test('a program that cannot start is an error', async () => {
    await expect(runProgram('/does/not/exist', [])).rejects.toThrow(
      /^failed to start \/does\/not\/exist/,
    );
  });
});

test('version: prints the versions without Temporal', async () => {
  const run = new CliProcess(['version', '--json', '--address', 'nowhere:1']);
  expect((await run.exited).code).toBe(0);
  expect(JSON.parse(run.stdout)).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/) as unknown,
    temporalSdk: expect.stringMatching(/^\d+\.\d+\.\d+/) as unknown,
    node: process.version.slice(1),
  });
});

test.each([
  [
    ['help', 'runner', 'get'],
    ['runner', 'get', '--help'],
  ],
  [
    ['help', 'set'],
    ['set', '--help'],
  ],
  [['help'], ['--help']],
])('%j prints the same page as %j', async (asked, page) => {
  const [one, other] = [new CliProcess(asked), new CliProcess(page)];
  expect([(await one.exited).code, (await other.exited).code]).toEqual([0, 0]);
  expect(one.stdout).toBe(other.stdout);
});

test('help for a command that does not exist is a usage error', async () => {
  const run = new CliProcess(['help', 'runner', 'fetch']);
  expect((await run.exited).code).toBe(2);
  expect(run.stderr).toContain('fetch');
});
