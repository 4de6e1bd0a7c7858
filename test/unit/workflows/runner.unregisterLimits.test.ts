/** Time limits of the steps of an unregistration. */
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { RunnerInput } from '../../../core/contract/index.ts';
import type { PodView } from '../../../core/domain/pod.ts';
import { applyPodState, onRejectedAsBusy } from '../../../workflows/runner/runnerActivity.ts';
import type { RunnerState } from '../../../workflows/runner/state.ts';
import {
  currentFacts,
  removalJobMs,
  removalLimits,
  waitMs,
} from '../../../workflows/runner/unregister.ts';
import {
  initialProgress,
  type UnregistrationFacts,
  type WaitKind,
} from '../../../workflows/runner/unregisterFacts.ts';
import { BORN, RUNNING_POD, runnerState } from '../../support/runnerStates.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** An hour after the runner has started. */
const NOW = BORN + HOUR;
const INPUT: Partial<RunnerInput> = {
  timeouts: { jobTimeout: '2h', unregistration: '7m', registration: '5m' },
  intervals: {
    stopResponseTimeout: '11s',
    idleConfirmation: '12s',
    removalGrace: '13s',
    busyCheck: '14m',
    absentCheck: '15s',
    listMaxAge: '16s',
    credentialsRetry: '17s',
  },
};

beforeEach(() => void jest.useFakeTimers({ now: NOW }));
afterEach(() => void jest.useRealTimers());

describe('a removal during a job that may finish', () => {
  const alive = { ended: false } as const;
  const told = (state: RunnerState, busy: boolean): RunnerState => {
    applyPodState(state, busy ? 'busy' : 'idle');
    return state;
  };

  test.each([true, false])('is requested until the deadline of its job (ephemeral: %s)', (once) => {
    const state = told(runnerState({ ...INPUT, ephemeral: once }, RUNNING_POD), true);
    jest.advanceTimersByTime(HOUR);
    expect(removalJobMs(state, alive, 'return')).toBe(HOUR);
    jest.advanceTimersByTime(2 * HOUR);
    expect(removalJobMs(state, alive, 'return')).toBe(1);
  });

  test('of a runner that does not report jobs is requested for the maximum time of a job', () => {
    const silent = runnerState(INPUT, RUNNING_POD);
    const idle = told(runnerState(INPUT, RUNNING_POD), false);
    for (const state of [silent, idle])
      expect([removalJobMs(state, alive, 'retry'), removalJobMs(state, alive, 'return')]).toEqual([
        2 * HOUR,
        undefined,
      ]);
  });

  test('is limited from the CI server’s first busy response, if the job was not reported before', () => {
    const state = runnerState({ ...INPUT, supervisor: 'none' }, RUNNING_POD);
    onRejectedAsBusy(state);
    jest.advanceTimersByTime(HOUR);
    onRejectedAsBusy(state);
    expect(state.runner).toMatchObject({ jobDeadline: NOW + 2 * HOUR, hadJob: true, online: true });
    const facts = { ...currentFacts(state), ...initialProgress() };
    expect(waitMs(state, 'busyCheck', facts)).toBe(14 * MINUTE);
    jest.advanceTimersByTime(55 * MINUTE);
    expect(waitMs(state, 'busyCheck', facts)).toBe(5 * MINUTE);
  });

  test.each([{ ended: true }, { ended: false, stop: 'stop' as const }])(
    'has no such limit for %j',
    (facts) =>
      expect(
        removalJobMs(told(runnerState(INPUT, RUNNING_POD), true), facts, 'retry'),
      ).toBeUndefined(),
  );
});

describe('a removal', () => {
  test.each<
    [
      what: string,
      pod: PodView | undefined,
      facts: Parameters<typeof removalLimits>[1],
      expected: ReturnType<typeof removalLimits>,
    ]
  >([
    ['of a runner that may finish its job has no limit', RUNNING_POD, { ended: false }, {}],
    [
      'of a runner that is to be stopped: until the response timeout',
      RUNNING_POD,
      { ended: false, stop: 'stop' },
      { responseTimeoutMs: 11 * SECOND },
    ],
    ['of an ended runner', RUNNING_POD, { ended: true }, { withinMs: 7 * MINUTE }],
    [
      'of an ended runner with a stop request: the response timeout applied to the stop',
      RUNNING_POD,
      { ended: true, stop: 'stop' },
      { withinMs: 7 * MINUTE },
    ],
    [
      'of a runner that may never have been registered',
      undefined,
      { ended: true },
      { withinMs: 2 * MINUTE },
    ],
  ])('%s', (_what, pod, facts, expected) => {
    expect(removalLimits(runnerState(INPUT, pod), facts)).toEqual(expected);
  });
});

describe('a wait', () => {
  type Facts = Partial<UnregistrationFacts>;
  const waits = (until: WaitKind, facts: Facts = {}, change?: (state: RunnerState) => void) => {
    const state = runnerState(INPUT, RUNNING_POD);
    change?.(state);
    return waitMs(state, until, { ...currentFacts(state), ...initialProgress(), ...facts });
  };
  const absentSinceMs = NOW - 4 * SECOND;

  test.each<
    [until: WaitKind, what: string, facts: Facts, change: (state: RunnerState) => void, ms: number]
  >([
    ['stopResponse', 'the whole of it', { absentSinceMs }, () => undefined, 11 * SECOND],
    ['idleConfirmed', 'since the proof', { absentSinceMs }, () => undefined, 8 * SECOND],
    ['idleConfirmed', 'without a proof', {}, () => undefined, 12 * SECOND],
    ['settled', 'never online', { absentSinceMs }, () => undefined, 9 * SECOND],
    [
      'settled',
      'was online once, so it may have taken a job',
      { absentSinceMs },
      ({ runner }) => (runner.online = true),
      2 * HOUR - 4 * SECOND,
    ],
    [
      'settled',
      'was online once, and does not end with its registration',
      { absentSinceMs },
      (state) => {
        state.runner.online = true;
        state.admit({ ...state.spec, outlivesRegistration: true });
      },
      9 * SECOND,
    ],
    ['terminated', 'a forced stop', { stopped: 'force' }, () => undefined, 10 * SECOND],
    [
      'terminated',
      'a stop: its grace period, and a minute',
      { stopped: 'stop' },
      () => undefined,
      30 * SECOND + MINUTE,
    ],
    ['jobDeadline', 'without a known job: a whole job', {}, () => undefined, 2 * HOUR],
    ['jobDeadline', 'of its job', {}, ({ runner }) => (runner.jobDeadline = NOW + MINUTE), MINUTE],
    ['busyCheck', 'a long job', {}, () => undefined, 14 * MINUTE],
    [
      'busyCheck',
      'not after the end of its job',
      {},
      ({ runner }) => (runner.jobDeadline = NOW + MINUTE),
      MINUTE,
    ],
    ['listRecheck', 'since now', {}, () => undefined, 16 * SECOND],
    [
      'listRecheck',
      'from the time at which it was not listed',
      { unlistedSinceMs: NOW - 6 * SECOND },
      () => undefined,
      10 * SECOND,
    ],
    ['credentialsRetry', 'the whole of it', { absentSinceMs }, () => undefined, 17 * SECOND],
  ])('%s: %s', (until, _what, facts, change, ms) => {
    expect(waits(until, facts, change)).toBe(ms);
  });
});
