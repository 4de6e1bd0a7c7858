import { describe, expect, test } from '@jest/globals';
import { GITEA_RUNNER } from '../../core/domain/runnerKinds/gitea.ts';
import { GITHUB_RUNNER } from '../../core/domain/runnerKinds/gitHub.ts';
import { childEnvironment } from '../../supervisor/process/childEnvironment.ts';
import { formatDuration, parseDuration } from '../../supervisor/settings/duration.ts';
import { exitCodeOf, exitStatusOf } from '../../supervisor/process/exitStatus.ts';
import { descendantProcesses } from '../../supervisor/process/descendants.ts';
import { hookScript } from '../../supervisor/ciRunner/hookScript.ts';
import {
  isReady,
  type JobSignal,
  jobStateAfter,
  INITIAL,
} from '../../supervisor/ciRunner/jobState.ts';
import { type ProcessContext, killScope } from '../../supervisor/process/killScope.ts';
import { MAX_MESSAGE_BYTES, markerText } from '../../supervisor/records/marker.ts';
import { readOptions, UsageError } from '../../supervisor/settings/options.ts';
import type { ProcessRow } from '../../supervisor/process/processTable.ts';
import { RunnerLog } from '../../supervisor/ciRunner/runnerLog.ts';
import { helpText, SETTINGS } from '../../supervisor/settings/settings.ts';
import { parseStopReason } from '../../supervisor/signals/stopReason.ts';

describe('durations', () => {
  test.each([
    ['4h', 14_400_000, '4h0m0s'],
    ['30m', 1_800_000, '30m0s'],
    ['1h30m', 5_400_000, '1h30m0s'],
    ['90s', 90_000, '1m30s'],
    ['15s', 15_000, '15s'],
    ['1.5s', 1500, '1.5s'],
    ['100ms', 100, '100ms'],
    ['0', 0, '0s'],
    ['0s', 0, '0s'],
    ['49h', 176_400_000, '49h0m0s'],
  ])('%s = %d ms = %s', (text, ms, printed) => {
    expect(parseDuration(text)).toBe(ms);
    expect(formatDuration(ms)).toBe(printed);
  });

  test.each(['', '5', '-1s', 's', '1 s', '1s2', 'Infinity'])('"%s" is invalid', (text) => {
    expect(() => parseDuration(text)).toThrow(RangeError);
  });
});

describe('exit status', () => {
  test.each([
    [{ code: 0, signal: null }, 'code', 0],
    [{ code: 42, signal: null }, 'code', 42],
    [{ code: null, signal: 'SIGTERM' }, 'signal', 143],
    [{ code: null, signal: 'SIGINT' }, 'signal', 130],
    [{ code: null, signal: 'SIGKILL' }, 'signal', 137],
    [{ code: null, signal: 'SIGHUP' }, 'signal', 129],
    [{ code: null, signal: 'SIGQUIT' }, 'code', 131],
    [{ code: null, signal: 'SIGSEGV' }, 'code', 139],
    [{ code: null, signal: 'SIGABRT' }, 'code', 134],
    [{ code: null, signal: null }, 'code', 127],
  ] as const)('%j: by %s, %d', (end, kind, code) => {
    const status = exitStatusOf(end);
    expect(status.kind).toBe(kind);
    expect(exitCodeOf(status)).toBe(code);
  });
});

test.each([
  ['evicted', 'evicted'],
  [' superseded\n', 'superseded'],
  ['', undefined],
  ['Evicted', undefined],
  ['constructor', undefined],
])('stated reason %j: %s', (text, reason) => {
  expect(parseStopReason(text)).toBe(reason);
});

describe('kill scope', () => {
  const own = ['node', 'supervisor.mjs', '--', 'run.sh'];
  const inPod: ProcessContext = {
    ppid: 1,
    parentName: 'tini',
    parentCommandLine: ['/tini', '-s', '--', ...own],
    ownCommandLine: own,
    assumedDedicated: false,
  };
  test.each<{ what: string; facts: Partial<ProcessContext>; scope: ReturnType<typeof killScope> }>([
    { what: 'PID 1 is a tini that runs the supervisor', facts: {}, scope: { kind: 'namespace' } },
    {
      what: 'PID 1 is a static tini that runs the supervisor',
      facts: { parentName: 'tini-static' },
      scope: { kind: 'namespace' },
    },
    {
      what: 'hostPID: the tini of the supervisor is not PID 1',
      facts: { ppid: 4711 },
      scope: { kind: 'family', root: 4711 },
    },
    {
      what: 'shared process namespace, no tini: PID 1 is the pause container',
      facts: { parentName: 'pause', parentCommandLine: ['/pause'] },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: 'no tini: PID 1 is that of the node',
      facts: { parentName: 'systemd', parentCommandLine: ['/sbin/init'] },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: 'declared as tini, but PID 1 is not tini',
      facts: { parentName: 'pause', parentCommandLine: ['/pause'], assumedDedicated: true },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: 'declared as tini, but the tini is not PID 1',
      facts: { ppid: 5, parentCommandLine: ['tini', '--', 'entry.sh'], assumedDedicated: true },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: 'PID 1 is a tini that runs another program',
      facts: { parentCommandLine: ['tini', '--', 'bash'] },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: '… and declared as tini: a script in between',
      facts: { parentCommandLine: ['tini', '--', 'entry.sh'], assumedDedicated: true },
      scope: { kind: 'namespace' },
    },
    {
      what: 'a process with the command line of the supervisor that is not tini',
      facts: { parentName: 'sudo', parentCommandLine: ['sudo', ...own] },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: 'a process named tini with exactly the command line of the supervisor',
      facts: { parentCommandLine: own },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: 'nothing can be read',
      facts: { parentName: undefined, parentCommandLine: undefined, ownCommandLine: undefined },
      scope: { kind: 'family', root: 'self' },
    },
    {
      what: 'the own command line is empty',
      facts: { ownCommandLine: [] },
      scope: { kind: 'family', root: 'self' },
    },
  ])('$what', ({ facts, scope }) => {
    expect(killScope({ ...inPod, ...facts })).toEqual(scope);
  });
});

describe('family', () => {
  /** pid, ppid, session, zombie. */
  const table = (...rows: [number, number, number, boolean?][]): ProcessRow[] =>
    rows.map(([pid, ppid, session, zombie = false]) => ({
      pid,
      ppid,
      session,
      group: session,
      zombie,
      nice: 0,
      startedAt: 0,
    }));
  const find = (
    rows: ProcessRow[],
    more: { root?: number; child?: number | undefined; marked?: number[] } = {},
  ): number[] =>
    descendantProcesses(rows, {
      root: more.root ?? 10,
      supervisor: 10,
      child: 'child' in more ? more.child : 20,
      marked: (pid) => more.marked?.includes(pid) ?? false,
    })
      .map(({ pid }) => pid)
      .sort((a, b) => a - b);

  test.each([
    [
      'descendants, but not the supervisor, its parent or unrelated processes',
      table(
        [1, 0, 1],
        [5, 1, 5],
        [10, 5, 5],
        [20, 10, 20],
        [21, 20, 20],
        [22, 21, 20],
        [90, 1, 90],
      ),
      {},
      [20, 21, 22],
    ],
    [
      'a descendant in another session',
      table([1, 0, 1], [10, 1, 5], [20, 10, 20], [21, 20, 21]),
      {},
      [20, 21],
    ],
    ["an orphan of the child's session", table([1, 0, 1], [10, 1, 5], [30, 1, 20]), {}, [30]],
    [
      'a marked orphan in another session, and its children',
      table([1, 0, 1], [10, 1, 5], [30, 1, 30], [31, 30, 31]),
      { marked: [30] },
      [30, 31],
    ],
    [
      'orphans that the tini has adopted',
      table([1, 0, 1], [9, 1, 9], [10, 9, 5], [20, 10, 20], [30, 9, 30], [90, 1, 90]),
      { root: 9 },
      [20, 30],
    ],
    [
      'not zombies, but their children',
      table([1, 0, 1], [10, 1, 5], [20, 10, 20, true], [21, 20, 21]),
      {},
      [21],
    ],
    [
      'no child yet, so no session',
      table([1, 0, 1], [10, 1, 5], [30, 1, 20]),
      { child: undefined },
      [],
    ],
    ['never PID 1', table([1, 0, 20], [10, 1, 5]), { marked: [1] }, []],
  ])('%s', (_what, rows, more, expected) => {
    expect(find(rows, more)).toEqual(expected);
  });
});

describe('job state', () => {
  test.each<{ signs: JobSignal[]; online: boolean; busy: boolean }>([
    { signs: [], online: false, busy: false },
    { signs: ['logListening'], online: true, busy: false },
    { signs: ['logListening', 'logStarted'], online: true, busy: true },
    { signs: ['logListening', 'logStarted', 'hookStarted', 'hookEnded'], online: true, busy: true },
    {
      signs: ['logListening', 'logStarted', 'hookStarted', 'hookEnded', 'logEnded'],
      online: true,
      busy: false,
    },
    { signs: ['logListening', 'logStarted', 'logEnded', 'hookEnded'], online: true, busy: false },
    { signs: ['logListening', 'hookStarted'], online: true, busy: false },
    { signs: ['logListening', 'logStarted', 'logEnded', 'hookStarted'], online: true, busy: false },
    { signs: ['hookStarted'], online: true, busy: true },
    { signs: ['hookStarted', 'hookEnded'], online: true, busy: false },
    { signs: ['hookStarted', 'logListening', 'logEnded'], online: true, busy: false },
    { signs: ['logListening', 'logStarted', 'logEnded', 'logStarted'], online: true, busy: true },
  ])('$signs: online $online, busy $busy', ({ signs, online, busy }) => {
    const state = signs.reduce(jobStateAfter, INITIAL);
    expect(state).toMatchObject({ online, busy });
    expect(isReady(state, false)).toBe(online && !busy);
  });

  test('an ephemeral runner is ready until its job starts, and never again', () => {
    const signs: JobSignal[] = [
      'logListening',
      'logStarted',
      'hookStarted',
      'hookEnded',
      'logEnded',
    ];
    expect(
      [
        INITIAL,
        ...signs.map((_, count) => signs.slice(0, count + 1).reduce(jobStateAfter, INITIAL)),
      ].map((state) => isReady(state, true)),
    ).toEqual([false, true, false, false, false, false]);
  });
});

describe("the runner's log", () => {
  const LINES =
    '\n√ Connected to GitHub\n2026-01-02 03:04:05Z: Listening for Jobs\n2026-01-02 03:04:06Z: Running job: build (ubuntu)\r\n2026-01-02 03:04:07Z: Job build (ubuntu) completed with result: Failed\n';
  test('is parsed as a whole, and in chunks of every size', () => {
    for (const size of [LINES.length, 1, 7, 64]) {
      const log = new RunnerLog(GITHUB_RUNNER.log);
      const signs: JobSignal[] = [];
      const bytes = Buffer.from(LINES);
      for (let at = 0; at < bytes.length; at += size)
        signs.push(...log.read(bytes.subarray(at, at + size)));
      expect(signs).toEqual(['logListening', 'logStarted', 'logEnded']);
    }
  });

  test.each([
    'Listening for Jobs\n',
    'echo 2026-01-02 03:04:05Z: Listening for Jobs\n',
    '2026-01-02 03:04:05Z: Not Listening for Jobs\n',
    '2026-01-02 03:04:05Z: Listening for Jobs',
  ])('%j is ignored', (text) => {
    expect(new RunnerLog(GITHUB_RUNNER.log).read(Buffer.from(text))).toEqual([]);
  });

  test("of Gitea's runner gives the same signals", () => {
    const line = (msg: string): string => `time="2026-11-26T17:00:00Z" level=info msg="${msg}"\n`;
    const text = [
      'Starting runner daemon',
      'runner: r-1, with version: v1.0.8, with labels: [x64], declare successfully',
      'task 4 repo is acme/app https://github.com http://127.0.0.1:3000',
      'runner: r-1 shutdown initiated, waiting 24h0m0s for running jobs to complete before shutting down',
    ].map(line);
    const log = new RunnerLog(GITEA_RUNNER.log!);
    expect(log.read(Buffer.from(text.join('')))).toEqual([
      'logListening',
      'logStarted',
      'logEnded',
    ]);
    expect(log.read(Buffer.from('task 4 repo is acme/app\n'))).toEqual([]);
  });

  test('an endless line does not fill the memory, and the next line is read', () => {
    const log = new RunnerLog(GITHUB_RUNNER.log);
    for (let i = 0; i < 100; i++) log.read(Buffer.alloc(65_536, 'x'));
    expect(log.read(Buffer.from('\n2026-01-02 03:04:05Z: Listening for Jobs\n'))).toEqual([
      'logListening',
    ]);
  });
});

describe('hook scripts', () => {
  test.each([
    ['.sh', undefined, true],
    ['.sh', '/own.sh', true],
    ['.ps1', '/own.ps1', true],
    ['.js', '/own.js', true],
    ['.py', '/own.py', false],
    ['', '/own', false],
  ])('%s %s', (extension, own, written) => {
    for (const when of ['started', 'completed'] as const)
      expect(hookScript(extension, { when, file: '/jobs', own }) !== undefined).toBe(written);
  });

  test("the start is recorded before the user's hook, the end after it", () => {
    const started = hookScript('.sh', { when: 'started', file: '/jobs', own: "/it's.sh" }) ?? '';
    const completed =
      hookScript('.sh', { when: 'completed', file: '/jobs', own: "/it's.sh" }) ?? '';
    expect(started.indexOf('/jobs')).toBeLessThan(started.indexOf("'/it'\\''s.sh'"));
    expect(completed.indexOf('/jobs')).toBeGreaterThan(completed.indexOf("'/it'\\''s.sh'"));
  });
});

describe('options', () => {
  test('defaults', () => {
    expect(readOptions(['--', 'run.sh', '--once'], {})).toEqual({
      command: ['run.sh', '--once'],
      plan: {
        signalTimeoutMs: 10_000,
        cleanupTimeoutMs: 5000,
        drainTimeoutMs: 0,
        onTerm: 'stop',
        stopSignals: [],
        signalTarget: 'group',
        cleanup: false,
      },
      runnerKind: 'command',
      ephemeral: false,
      mergeOutput: false,
      attempt: 1,
      assumeDedicatedPid1: false,
    });
  });

  test("by environment, followed by the image's own command; an option overrides its variable; an empty one is absent", () => {
    const options = readOptions(['--signal-timeout', '2s', '--', './run.sh'], {
      HOLDFAST_SIGNAL_TIMEOUT: '1m',
      HOLDFAST_TIMEOUT: '1h',
      HOLDFAST_PROBE_PORT: '8081',
      HOLDFAST_RUNNER_KIND: '',
      HOLDFAST_CLEANUP_COMMAND: 'upload --all',
    });
    expect(options).toMatchObject({
      plan: { signalTimeoutMs: 2000, timeoutMs: 3_600_000, cleanup: true },
      probes: { port: 8081 },
      runnerKind: 'command',
      cleanupCommand: ['upload', '--all'],
    });
  });

  test('timeout 0 means no timeout', () => {
    expect(readOptions(['--timeout', '0', '--', 'x'], {})?.plan).not.toHaveProperty('timeoutMs');
  });

  test("the command's own options are not parsed, with and without --", () => {
    expect(readOptions(['./run.sh', '--timeout', 'never', '--', 'x'], {})?.command).toEqual([
      './run.sh',
      '--timeout',
      'never',
      '--',
      'x',
    ]);
    expect(readOptions(['--', '--odd', '--', 'x'], {})?.command).toEqual(['--odd', '--', 'x']);
    expect(readOptions(['./run.sh', '--timeout', 'never'], {})?.command).toEqual([
      './run.sh',
      '--timeout',
      'never',
    ]);
  });

  test.each<[string[], Record<string, string>]>([
    [[], {}],
    [['--'], {}],
    [['--nope', '--', 'x'], {}],
    [['--timeout', '--', 'x'], {}],
    [['--', 'x'], { HOLDFAST_ATTEMPT: '0' }],
    [['--', 'x'], { HOLDFAST_PROBE_PORT: '70000' }],
    [['--', 'x'], { HOLDFAST_CLEANUP_COMMAND: '["a", 1]' }],
    [['--', 'x'], { HOLDFAST_CLEANUP_COMMAND: '[' }],
    [['--', 'x'], { HOLDFAST_STOP_SIGNALS: 'SIGINT,SIGTERM@11s' }],
  ])('%j %j is rejected', (argv, env) => {
    expect(() => readOptions(argv, env)).toThrow(UsageError);
  });

  test('help names every option and variable', () => {
    expect(readOptions(['--help'], {})).toBeUndefined();
    for (const { flag, env } of SETTINGS)
      expect(helpText()).toMatch(new RegExp(`--${flag} [^]*${env}\n`));
  });
});

test("the command's environment: without the settings of the supervisor, with its variables", () => {
  const env = {
    PATH: '/bin',
    HOLDFAST_TIMEOUT: '1h',
    HOLDFAST_ASSUME_DEDICATED_PID1: '1',
    HOLDFAST_PROBE_PORT: '1',
    HOLDFAST_ATTEMPT: '2',
    HOLDFAST_CHILD_ENV_NODE_OPTIONS: '--x',
    NODE_OPTIONS: '',
    HOLDFAST_OTHER: 'kept',
  };
  expect(childEnvironment(env, { SAID: 'so' })).toEqual({
    PATH: '/bin',
    HOLDFAST_ATTEMPT: '2',
    NODE_OPTIONS: '--x',
    HOLDFAST_OTHER: 'kept',
    SAID: 'so',
  });
});

test('a marker is one line with five fields, and fits into a termination message', () => {
  const text = markerText({
    exitCode: 127,
    signal: 'SIGKILL',
    reason: 'superseded',
    startedAt: '2026-01-02T03:04:05.678Z',
    endedAt: '2026-01-02T03:04:05.678Z',
  });
  expect(text).toBe(
    '{"exitCode":127,"signal":"SIGKILL","reason":"superseded","startedAt":"2026-01-02T03:04:05.678Z","endedAt":"2026-01-02T03:04:05.678Z"}\n',
  );
  expect(text.length).toBeLessThan(MAX_MESSAGE_BYTES);
});
