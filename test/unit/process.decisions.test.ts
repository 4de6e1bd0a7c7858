import { describe, expect, test } from '@jest/globals';
import { defaultStateDir, type PodRecord } from '../../activities/compute/process/podDirectory.ts';
import { toPodView } from '../../activities/compute/process/podView.ts';
import { parseProcStat, parsePs } from '../../activities/compute/process/processIdentity.ts';
import { baseEnvironment } from '../../activities/compute/process/runnerCommand.ts';
import {
  remainingGraceMs,
  mergeStopRequest,
  type StopRequest,
} from '../../activities/compute/process/stopRequest.ts';

describe('a repeated deletion shortens the grace period, never extends it', () => {
  const nowMs = Date.parse('2026-01-01T00:00:10.000Z');
  const present: StopRequest = {
    at: '2026-01-01T00:00:00.000Z',
    deadline: '2026-01-01T00:00:30.000Z',
    reason: 'drained',
  };
  test.each<[string, StopRequest | undefined, number, StopRequest | undefined]>([
    [
      'the first',
      undefined,
      5,
      { at: '2026-01-01T00:00:10.000Z', deadline: '2026-01-01T00:00:15.000Z', reason: 'again' },
    ],
    [
      'the first, at once',
      undefined,
      0,
      { at: '2026-01-01T00:00:10.000Z', deadline: '2026-01-01T00:00:10.000Z', reason: 'again' },
    ],
    ['a shorter one', present, 5, { ...present, deadline: '2026-01-01T00:00:15.000Z' }],
    ['one with the same end', present, 20, undefined],
    ['a longer one', present, 60, undefined],
  ])('%s', (_what, before, seconds, expected) => {
    expect(mergeStopRequest(before, seconds, 'again', nowMs)).toEqual(expected);
  });

  test('the remaining grace period is never negative', () => {
    expect([remainingGraceMs(present, nowMs), remainingGraceMs(present, nowMs + 60_000)]).toEqual([
      20_000, 0,
    ]);
  });
});

describe('the view of a process pod', () => {
  const spec = {
    name: 'p',
    uid: 'u',
    workflowId: 'w',
    node: 'n',
    createdAt: 'c',
    command: ['x'],
    env: { PLAIN: 'p' },
    labels: {},
    terminationGracePeriodSeconds: 30,
  };
  const base = {
    name: 'p',
    uid: 'u',
    workflowId: 'w',
    scheduled: true,
    node: 'n',
    createdAt: 'c',
    ended: false,
    deleted: false,
    terminating: false,
  };
  const started = { process: { pid: 1, startTime: 's' }, at: 't' };
  test.each<[string, PodRecord, object]>([
    ['just made', { spec }, base],
    ['its wrapper starting', { spec, owner: { wrapper: { pid: 1, startTime: 's' } } }, base],
    ['running', { spec, started }, { ...base, startedAt: 't' }],
    [
      'ended',
      { spec, started, exit: { code: 3, finishedAt: 'f' } },
      {
        ...base,
        startedAt: 't',
        ended: true,
        exit: { code: 3, oomKilled: false, finishedAt: 'f' },
      },
    ],
    [
      'never started',
      { spec, exit: { code: 127, finishedAt: 'f', message: 'm' } },
      {
        ...base,
        ended: true,
        exit: { code: 127, oomKilled: false, finishedAt: 'f', message: 'm' },
      },
    ],
    [
      'terminating',
      { spec, started, stop: { at: 'a', deadline: 'd', reason: 'r' } },
      { ...base, startedAt: 't', terminating: true, terminationDeadline: 'd' },
    ],
    [
      'shut down',
      { spec, started, exit: { code: 143, finishedAt: 'f', reason: 'Shutdown' } },
      {
        ...base,
        startedAt: 't',
        ended: true,
        reason: 'Shutdown',
        exit: { code: 143, oomKilled: false, finishedAt: 'f' },
      },
    ],
  ])('%s', (_what, record, expected) => {
    expect(toPodView(record)).toEqual(expected);
  });
});

describe('when a process started', () => {
  const rest = '1 10 10 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 200';
  test.each<[string, string | undefined, string | undefined]>([
    ['no process', undefined, undefined],
    ['a running one', `10 (sh) S ${rest}`, '987654'],
    ['one with parentheses in its name', `10 (a) Z (b) R ${rest}`, '987654'],
    ['a zombie', `10 (sh) Z ${rest}`, undefined],
    ['a dead one', `10 (sh) X ${rest}`, undefined],
  ])('from /proc: %s', (_what, stat, expected) => {
    expect(parseProcStat(stat)).toBe(expected);
  });

  test('from ps, as macOS prints it', () => {
    const output =
      '  501 Ss   Mon Jan  5 09:07:01 2026    \n 1502 Z    Mon Jan  5 09:07:02 2026\n99999 R+   Tue Jan  6 19:07:03 2026\n';
    expect([...parsePs(output)]).toEqual([
      [501, 'Mon Jan  5 09:07:01 2026'],
      [99999, 'Tue Jan  6 19:07:03 2026'],
    ]);
  });
});

test('the state directory follows the XDG base directory specification', () => {
  expect(defaultStateDir({ XDG_STATE_HOME: '/state' })).toBe('/state/holdfast/processes');
  expect(defaultStateDir({ XDG_STATE_HOME: '' })).toMatch(/\/\.local\/state\/holdfast\/processes$/);
});

test('a runner inherits four variables from its worker, and has defaults if the worker has none', () => {
  const worker = {
    PATH: '/bin',
    HOME: '/home/ci',
    LANG: 'de_DE.UTF-8',
    TMPDIR: '/scratch',
    GITHUB_TOKEN: 'secret',
    NODE_OPTIONS: '--inspect',
  };
  expect(baseEnvironment(worker)).toEqual({
    PATH: '/bin',
    HOME: '/home/ci',
    LANG: 'de_DE.UTF-8',
    TMPDIR: '/scratch',
  });
  expect(baseEnvironment({})).toEqual({
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: '/',
    LANG: 'C.UTF-8',
    TMPDIR: '/tmp',
  });
});
