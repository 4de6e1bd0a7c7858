import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { CliError } from '../../cli/shared/exit.ts';
import { debounceMs, interruptAction, sigtermAction } from '../../cli/shared/interrupts.ts';
import { generateName } from '../../cli/shared/generateName.ts';
import { inputFromFlags, type RunnerFlags } from '../../cli/runner/runnerFlags.ts';
import { selectionQuery, type Selection } from '../../cli/shared/selection.ts';
import { connectionSettings } from '../../cli/shared/session.ts';
import { planStart } from '../../cli/runner/startRunner.ts';
import { runCli } from '../support/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'hf-cli-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('flags to input', () => {
  const rows: [string, RunnerFlags, Record<string, unknown>, Record<string, unknown>][] = [
    ['nothing', {}, {}, {}],
    [
      'everything',
      {
        org: 'acme',
        name: 'big',
        set: 'linux',
        labels: 'a, b',
        static: true,
        credential: 'app',
        runnerGroupId: '3',
        image: 'i',
        podNamespace: 'n',
        onEviction: 'replace',
      },
      {},
      {
        organization: 'acme',
        name: 'big',
        set: 'linux',
        labels: ['a', 'b'],
        ephemeral: false,
        credential: 'app',
        runnerGroupId: '3',
        image: 'i',
        namespace: 'n',
        onEviction: 'replace',
      },
    ],
    [
      'flags override the file',
      { labels: 'x', ephemeral: true },
      { labels: ['a'], ephemeral: false, credential: 'c' },
      { labels: ['x'], ephemeral: true, credential: 'c' },
    ],
    [
      'a scope flag replaces the scope of the file',
      { repo: 'acme/app' },
      { organization: 'acme' },
      { repository: 'acme/app' },
    ],
    [
      'two scope flags are kept, so that validation rejects them',
      { repo: 'a/b', org: 'a' },
      {},
      { repository: 'a/b', organization: 'a' },
    ],
    [
      'timeouts are merged one by one',
      { jobTimeout: '2h' },
      { timeouts: { idle: '5m', jobTimeout: '1h' } },
      { timeouts: { idle: '5m', jobTimeout: '2h' } },
    ],
    [
      'stop',
      { stopSignalTimeout: '1m', stopCleanupTimeout: '2m' },
      {},
      { stop: { signalTimeout: '1m', cleanupTimeout: '2m' } },
    ],
    [
      'env',
      { env: ['A=1', 'B=x=y', 'C='] },
      { env: { A: '0', D: '4' } },
      { env: { A: '1', B: 'x=y', C: '', D: '4' } },
    ],
    [
      'other fields are left to validation',
      {},
      { organization: 'a', typo: 1, pod: { spec: {} } },
      { organization: 'a', typo: 1, pod: { spec: {} } },
    ],
  ];
  test.each(rows)('%s', (_title, flags, fromFile, expected) => {
    expect(inputFromFlags(flags, fromFile)).toEqual(expected);
  });

  test.each([[{ env: ['=x'] }, /--env: "=x"/]])('%j is a usage error', (flags, message) => {
    expect(() => inputFromFlags(flags)).toThrow(message);
  });
});

describe('the started workflow', () => {
  test.each<[RunnerFlags, string]>([
    [{ org: 'acme', name: 'big' }, 'runner-big'],
    [{ org: 'acme', name: 'big', set: 'linux' }, 'runner-linux-big'],
    [{ org: 'acme' }, 'runner-brisk-otter-7f3a'],
    [{ org: 'acme', set: 'linux' }, 'runner-linux-brisk-otter-7f3a'],
  ])('workflow id of %j', async (flags, id) => {
    expect((await planStart(flags, [], () => 'brisk-otter-7f3a')).workflowId).toBe(id);
  });

  test('summary within 200 bytes, search attributes, fairness key', async () => {
    const plan = await planStart({
      repo: 'acme/app',
      set: 's',
      static: true,
      labels: Array.from({ length: 60 }, (_, i) => `étiquette${i}`).join(','),
    });
    expect(plan.summary).toMatch(/^static runner for acme\/app \(étiquette0, /);
    expect(Buffer.byteLength(plan.summary)).toBeLessThanOrEqual(200);
    expect(plan.searchAttributes.map(({ key, value }) => [key.name, value])).toEqual([
      ['RunnerPhase', 'Requested'],
      ['RunnerScope', 'acme/app'],
      ['RunnerSet', 's'],
    ]);
    expect(plan.fairnessKey).toBe('acme/app');
  });

  test('a file in YAML or JSON, with overriding flags', async () => {
    const yaml = file('r.yaml', 'organization: acme\nlabels: [linux]\ntimeouts:\n  idle: 5m\n');
    expect((await planStart({ file: yaml, name: 'n', jobTimeout: '1h' })).input).toEqual({
      organization: 'acme',
      labels: ['linux'],
      name: 'n',
      timeouts: { idle: '5m', jobTimeout: '1h' },
    });
    const json = file('r.json', '{"repository": "acme/app", "name": "j"}');
    expect(await planStart({ image: 'alpine:3' }, ['migrate', '--all'])).toMatchObject({
      input: { ciServer: 'none', command: ['migrate', '--all'], image: 'alpine:3' },
      summary: 'migrate --all',
    });
    expect((await planStart({ repo: 'acme/app' }, ['run.sh'])).input).toEqual({
      repository: 'acme/app',
      command: ['run.sh'],
    });
    expect(await planStart({ file: json })).toMatchObject({
      workflowId: 'runner-j',
      input: { repository: 'acme/app' },
    });
  });

  test('generated names are valid for GitHub and Kubernetes', () => {
    for (let i = 0; i < 200; i++)
      expect(generateName()).toMatch(/^[a-z]{3,8}-[a-z]{3,8}-[0-9a-f]{4}$/);
  });
});

describe('invalid input is reported in one line with the field, its flag and the fix, before the connection to Temporal', () => {
  test.each<[string[], RegExp]>([
    [['--labels', 'a'], /^error: organization \(--org\) is missing: give exactly one of/],
    [
      ['--org', 'a', '--repo', 'a/b'],
      /^error: organization, repository \(--org, --repo\) exclude each other/,
    ],
    [['--repo', 'acme'], /^error: repository \(--repo\) must be "owner\/repo"/],
    [
      ['--org', 'a', '--job-timeout', 'soon'],
      /^error: timeouts\.jobTimeout \(--job-timeout\) is not a duration; write for example "30s"/,
    ],
    [
      ['--org', 'a', '--job-timeout', '25'],
      /^error: timeouts\.jobTimeout \(--job-timeout\) is not a duration/,
    ],
    [
      ['--org', 'a', '--name', 'x'.repeat(51)],
      /^error: name \(--name\) must be at most 50 characters/,
    ],
    [
      ['--org', 'a', '--runner-group-id', 'a/b'],
      /^error: runnerGroupId \(--runner-group-id\) must be 1 to 100 characters/,
    ],
    [
      ['--org', 'a', '--static', '--ephemeral'],
      /^error: option '--static' cannot be used with option '--ephemeral'/,
    ],
    [['-f', '/does/not/exist.yaml'], /^error: --file: .*\/does\/not\/exist\.yaml/],
  ])('runner start %j', async (args, message) => {
    const { status, stdout, stderr } = await runCli([
      'runner',
      'start',
      ...args,
      '--address',
      '127.0.0.1:1',
    ]);
    expect(stderr).toMatch(message);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  test('several errors have a line each', async () => {
    const options = ['--org', 'a', '--labels', ',', '--address', '127.0.0.1:1'];
    const { status, stdout, stderr } = await runCli(['runner', 'start', ...options]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/^error: /),
      expect.stringMatching(/^ {2}labels\.0 \(--labels\) /),
      expect.stringMatching(/^ {2}labels\.1 \(--labels\) /),
    ]);
  });

  test('an unknown field of a file', async () => {
    const { status, stderr } = await runCli([
      'run',
      '-f',
      file('typo.json', '{"organization":"a","timeouts":{"jobTimeuot":"1h"}}'),
      '--address',
      '127.0.0.1:1',
    ]);
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: 'error: timeouts.jobTimeuot is not a known field; check the spelling\n',
    });
  });

  test.each(['[1]', '"x"', 'a: [', ''])('a file with %j', async (text) => {
    const { status, stderr } = await runCli([
      'runner',
      'start',
      '-f',
      file('bad.yaml', text),
      '--address',
      '127.0.0.1:1',
    ]);
    expect(status).toBe(2);
    expect(stderr).toMatch(
      /^error: --file: .*bad\.yaml (must contain one object|is neither YAML nor JSON)/,
    );
  });

  test('several errors at once, and as JSON on stderr', async () => {
    const { status, stdout, stderr } = await runCli([
      'runner',
      'start',
      '--repo',
      'x',
      '--job-timeout',
      'y',
      '--json',
    ]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(JSON.parse(stderr).error).toMatchObject({
      code: 'invalid_input',
      fields: [{ field: 'repository (--repo)' }, { field: 'timeouts.jobTimeout (--job-timeout)' }],
    });
  });
});

describe('selection', () => {
  test.each<[Selection, string]>([
    [{}, 'WorkflowType = "runner" AND CloseTime IS NULL'],
    [{ all: true }, 'WorkflowType = "runner"'],
    [
      { phase: 'busy', set: 's' },
      "WorkflowType = \"runner\" AND CloseTime IS NULL AND RunnerSet = 's' AND RunnerPhase = 'Busy'",
    ],
    [
      { outcome: 'Errored', scope: 'a/b' },
      "WorkflowType = \"runner\" AND RunnerScope = 'a/b' AND RunnerOutcome = 'errored'",
    ],
    [
      { query: 'RunnerSet = "a" OR RunnerSet = "b"' },
      'WorkflowType = "runner" AND CloseTime IS NULL AND (RunnerSet = "a" OR RunnerSet = "b")',
    ],
  ])('%j', (selection, query) => {
    expect(selectionQuery(selection)).toBe(query);
  });

  test.each<Selection>([
    { phase: 'Bsy' },
    { outcome: 'ok' },
    { query: ' ' },
    { query: 'a = "b") OR (c = "d"' },
    { query: 'a = "b' },
    { query: '(a = "b"' },
  ])('%j is a usage error', (selection) => {
    expect(() => selectionQuery(selection)).toThrow(CliError);
  });

  test('brackets within quotes are text', () => {
    expect(selectionQuery({ query: 'RunnerSet = ")("', all: true })).toBe(
      'WorkflowType = "runner" AND (RunnerSet = ")(")',
    );
  });

  test('a name cannot end its quotes', () => {
    expect(selectionQuery({ set: "x' OR WorkflowId != '", all: true })).toBe(
      "WorkflowType = \"runner\" AND RunnerSet = 'x'' OR WorkflowId != '''",
    );
  });
});

describe('connection', () => {
  const config = file(
    'temporal.toml',
    '[profile.default]\naddress = "file:1"\nnamespace = "filens"\n[profile.other]\naddress = "other:2"\n',
  );
  const env = { TEMPORAL_CONFIG_FILE: config };

  test.each([
    [
      { address: 'flag:9', namespace: 'f' },
      { ...env, TEMPORAL_ADDRESS: 'env:8' },
      'flag:9 (from --address)',
      'f',
    ],
    [{}, { ...env, TEMPORAL_ADDRESS: 'env:8' }, 'env:8 (from TEMPORAL_ADDRESS)', 'filens'],
    [{}, env, 'file:1 (from the profile)', 'filens'],
    [{ profile: 'other' }, env, 'other:2 (from the profile)', 'default'],
    [
      {},
      { TEMPORAL_CONFIG_FILE: join(folder, 'none.toml') },
      'localhost:7233 (from the default)',
      'default',
    ],
  ])('%j and %j', (flags, environment, server, namespace) => {
    expect(connectionSettings(flags, environment)).toMatchObject({
      server,
      namespace,
      taskQueue: 'holdfast',
      ui: undefined,
    });
  });

  test.each(['http://localhost:7233', 'a b', 'host:port', 'host:70000', ''])(
    '--address %j is a usage error',
    (address) => {
      expect(() => connectionSettings({ address }, {})).toThrow(/^--address: "/);
    },
  );

  test('an unknown profile, and an invalid UI address, name the setting', () => {
    expect(() => connectionSettings({ profile: 'nope' }, env)).toThrow(/^--profile: .*nope/);
    expect(() => connectionSettings({}, { HOLDFAST_TEMPORAL_UI_URL: 'localhost:8233' })).toThrow(
      /^HOLDFAST_TEMPORAL_UI_URL: /,
    );
  });
});

describe('signals while attached', () => {
  test.each<[onTerminal: boolean, number, number | undefined, string]>([
    [true, 0, undefined, 'drain'],
    [true, 1, 150, 'stop'],
    [true, 1, 149, 'ignore'],
    [true, 2, 149, 'ignore'],
    [true, 2, 5_000, 'exit'],
    [true, 7, 5_000, 'exit'],
    [false, 0, undefined, 'stop'],
    [false, 1, 5_000, 'exit'],
    [false, 7, 5_000, 'exit'],
  ])(
    'SIGINT, terminal %p, after %i that counted, %p ms since the last: %s',
    (onTerminal, presses, since, kind) => {
      expect(interruptAction(presses, since, { onTerminal, debounceMs: 150 })).toEqual({ kind });
    },
  );

  test.each([
    [0, 'detach', 'detach'],
    [1, 'detach', 'detach'],
    [0, 'stop', 'stop'],
    [1, 'stop', 'detach'],
  ] as const)('SIGTERM after %i others, with --on-sigterm %s: %s', (earlier, policy, action) => {
    expect(sigtermAction(earlier, policy)).toBe(action);
  });

  test.each([
    [{}, true, 0],
    [{ npm_lifecycle_event: 'holdfast' }, true, 150],
    [{ npm_lifecycle_event: 'test' }, false, 0],
  ])('arrives twice only under npm on a terminal: %j, %p', (env, terminal, ms) => {
    expect(debounceMs(env, terminal)).toBe(ms);
  });

  test('each signal counts elsewhere, however fast they come', () => {
    expect(interruptAction(1, 0, { onTerminal: true, debounceMs: 0 })).toEqual({ kind: 'stop' });
  });
});
