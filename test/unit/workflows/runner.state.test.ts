import { describe, expect, test } from '@jest/globals';
import type { RunnerInput, RunnerJobEvent } from '../../../core/contract/index.ts';
import { parseCarriedState } from '../../../workflows/runner/parseCarriedState.ts';
import { recordPod } from '../../../workflows/runner/podWaits.ts';
import { countJobTime, deadlineCancellation } from '../../../workflows/runner/jobDeadline.ts';
import { applyPodState, onJobEvent } from '../../../workflows/runner/runnerActivity.ts';
import { RunnerState } from '../../../workflows/runner/state.ts';
import { BORN, RUNNING_POD, runnerState } from '../../support/runnerStates.ts';

const { startedAt: _startedAt, ...neverStarted } = RUNNING_POD;

describe('the cancel request that the verdict uses', () => {
  const drain = { mode: 'drain', reason: 'a', by: 'drain' } as const;
  const stop = { mode: 'stop', reason: 'b', by: 'cancelled' } as const;
  const ended = { ...RUNNING_POD, ended: true };
  /** Not admitted, so that it updates no details in the UI. */
  const running = (): RunnerState => {
    const state = new RunnerState('runner-1', 'f', BORN);
    state.runner.pod = RUNNING_POD;
    return state;
  };

  test('is the strongest one while the runner runs', () => {
    const state = running();
    for (const wanted of [drain, stop]) state.requestCancel(wanted);
    expect([state.cancel, state.verdictCancel]).toEqual([stop, stop]);
  });

  test('ignores a cancel after the end of the pod, which only prevents a replacement', () => {
    const [drained, left] = [running(), running()];
    drained.requestCancel(drain);
    for (const state of [drained, left]) {
      state.runner.pod = ended;
      state.requestCancel(stop);
      state.requestCancel({ ...stop, mode: 'force' });
    }
    expect([drained.verdictCancel, left.verdictCancel]).toEqual([drain, undefined]);
    expect([drained.cancel?.mode, left.cancel?.mode]).toEqual(['force', 'force']);
  });
});

describe('the run time of its container', () => {
  const started = (secondsAgo: number) => ({
    ...RUNNING_POD,
    startedAt: new Date(Date.now() - secondsAgo * 1_000).toISOString(),
  });
  const sinceStartedSeconds = (secondsAgo: number, seenSecondsAgo?: number): number => {
    const state = runnerState({}, started(secondsAgo));
    if (seenSecondsAgo === undefined) delete state.runner.startSeenMs;
    else state.runner.startSeenMs = Date.now() - seenSecondsAgo * 1_000;
    return Math.round(state.sinceStartedMs / 1_000);
  };

  test('uses the clock of the workflow, which saw the start', () => {
    expect(sinceStartedSeconds(180, 60)).toBe(60); // the node's clock is two minutes behind
    expect(sinceStartedSeconds(-60, 30)).toBe(30); // … a minute ahead
  });

  test('seen late, uses the start time of the pod with a tolerance of two minutes', () => {
    expect(sinceStartedSeconds(600, 0)).toBe(480);
    expect(sinceStartedSeconds(60)).toBe(0);
  });

  test('keeps the time at which the start was first seen, and carries it over', () => {
    const state = runnerState({}, neverStarted);
    recordPod(state, RUNNING_POD);
    const { startSeenMs } = state.runner;
    recordPod(state, RUNNING_POD);
    expect(startSeenMs).toBeGreaterThan(0);
    expect(parseCarriedState(state.toCarriedState(), Date.now())?.runner.startSeenMs).toBe(
      startSeenMs,
    );
  });
});

describe('the count of lost attempts', () => {
  type Attempt = 'never started' | 'no pod' | 'short' | 'long';
  test.each<[attempts: Attempt[], neverStarted: number, shortLived: number]>([
    [[], 0, 0],
    [['never started'], 1, 1],
    [['no pod'], 1, 1],
    [['never started', 'no pod', 'never started'], 3, 3],
    [['short'], 0, 1],
    [['short', 'short', 'short'], 0, 3],
    // A long attempt is the first of a new series of short ones.
    [['short', 'short', 'long'], 0, 1],
    [['short', 'short', 'long', 'short'], 0, 2],
    [['never started', 'never started', 'short'], 0, 3],
    [['never started', 'never started', 'long', 'never started'], 1, 2],
  ])('after %j', (attempts, neverStartedInARow, shortLivedInARow) => {
    const state = runnerState();
    for (const attempt of attempts) {
      if (attempt === 'no pod') delete state.runner.pod;
      else state.runner.pod = attempt === 'never started' ? neverStarted : RUNNING_POD;
      state.countLostAttempt({ shortLived: attempt !== 'long' });
      state.replaceRunner();
    }
    expect(state).toMatchObject({ neverStartedInARow, shortLivedInARow });
    expect(state.toCarriedState()).toMatchObject({ neverStartedInARow, shortLivedInARow });
  });
});

describe('the cap of one job', () => {
  const MINUTE = 60_000;
  /** Runs attempts of the given minutes; the last is still running. @returns its deadline, in minutes after its start */
  function deadlineAfter(input: Parameters<typeof runnerState>[0], minutes: number[]): number {
    const state = runnerState({ timeouts: { jobTimeout: '24h' }, ...input }, RUNNING_POD);
    const { now } = Date;
    let at = BORN;
    Date.now = () => at;
    try {
      for (const lasted of minutes) {
        applyPodState(state, 'busy');
        at += lasted * MINUTE;
        countJobTime(state);
        state.replaceRunner();
        state.runner.pod = { ...RUNNING_POD, uid: `u${at}` };
      }
      applyPodState(state, 'busy');
      return ((state.runner.jobDeadline ?? Number.NaN) - at) / MINUTE;
    } finally {
      Date.now = now;
    }
  }
  const command: Partial<RunnerInput> = {
    ciServer: 'none',
    command: ['train'],
    supervisor: 'none',
  };
  const BACKSTOP = deadlineAfter({ ...command, timeouts: { jobTimeout: '1m' } }, []) - 1;

  test.each<[what: string, Parameters<typeof runnerState>[0], minutes: number[], left: number]>([
    ['a command', command, [], 1_440 + BACKSTOP],
    ['… that was lost after an hour', command, [60], 1_380 + BACKSTOP],
    ['… and again', command, [60, 120], 1_260 + BACKSTOP],
    ['… and has no time left', command, [1_440], BACKSTOP],
    [
      '… whose own timeout is shorter',
      { ...command, timeouts: { jobTimeout: '1h' } },
      [60, 120],
      60 + BACKSTOP,
    ],
    ['a runner whose next job is a different one', { onEviction: 'replace' }, [60, 120], 1_440],
  ])('%s', (_what, input, minutes, left) => {
    expect(deadlineAfter(input, minutes)).toBe(left);
  });
});

describe('the time in which an ephemeral runner has to exit after its job', () => {
  const event = (action: 'in_progress' | 'completed'): RunnerJobEvent => ({
    action,
    jobId: '7',
    runnerName: 'runner-1',
  });
  type Step = 'in_progress' | 'completed' | 'another' | 'busy' | 'busyForLong' | 'idle' | 'ended';
  const after = (
    steps: Step[],
    input: Partial<RunnerInput> = {},
    conclusion = 'success',
  ): RunnerState => {
    const state = runnerState({ timeouts: { exit: '5m' }, ...input }, RUNNING_POD);
    for (const step of steps)
      if (step === 'ended') state.runner.pod = { ...RUNNING_POD, ended: true };
      else if (step === 'busy' || step === 'idle') applyPodState(state, step);
      else if (step === 'busyForLong') applyPodState(state, 'busy', 20_000);
      else
        onJobEvent(state, {
          ...(step === 'another' ? { ...event('in_progress'), jobId: '8' } : event(step)),
          ...(step === 'completed' ? { conclusion } : {}),
          runnerName: state.runnerName,
        });
    return state;
  };

  test.each<[what: string, steps: Step[], limited: boolean]>([
    ['its job runs', ['busy', 'in_progress'], false],
    ['its job has ended', ['busy', 'in_progress', 'completed'], true],
    ['... and its pod still reports a job', ['in_progress', 'busy', 'completed', 'busy'], true],
    ['only the end of its job is known, and its pod reports no job', ['completed'], true],
    ['only the end of some job is known, and its pod reports a job', ['busy', 'completed'], false],
    ['... and the pod then reports none', ['busy', 'completed', 'idle'], true],
    ['a job starts after all', ['idle', 'completed', 'busy'], false],
    ['... which is the ended one, reported late', ['idle', 'completed', 'busyForLong'], true],
    ['... by its event', ['completed', 'another'], false],
    ['... and has ended', ['idle', 'completed', 'busy', 'idle'], true],
    ['it has ended', ['busy', 'in_progress', 'ended', 'completed'], false],
  ])('%s', (_what, steps, limited) => {
    const { jobDeadline = Infinity, busySince } = after(steps).runner;
    expect(jobDeadline <= Date.now() + 300_000).toBe(limited);
    // The deadline applies to busy runners only.
    expect(limited && busySince === undefined).toBe(false);
  });

  test('a static runner takes its next job', () => {
    const state = after(['in_progress', 'completed'], { ephemeral: false });
    expect(state.runner.jobDeadline).toBeUndefined();
  });

  test.each<[what: string, state: RunnerState, by: string]>([
    ['its job has ended', after(['in_progress', 'completed']), 'drain'],
    ['its job was cancelled', after(['in_progress', 'completed'], {}, 'cancelled'), 'cancelled'],
    ['its job runs', after(['in_progress']), 'run_timeout'],
  ])('at the deadline, %s', (_what, state, by) => {
    expect(deadlineCancellation(state)).toMatchObject({ mode: 'stop', by });
  });

  test('a carried time in the future does not hide a later job', () => {
    const state = runnerState({}, RUNNING_POD);
    state.runner.jobs = { completed: [], latestEventAt: 250e12 };
    const { runner } = parseCarriedState(state.toCarriedState(), Date.now()) ?? {};
    expect(runner?.jobs.latestEventAt).toBeLessThanOrEqual(Date.now() + 2 * 60_000);
  });

  test.each<[what: string, failure: unknown, isKept: boolean]>([
    ['with a cause', { message: 'no node', cause: 'unschedulable' }, true],
    ['without a cause', { message: 'no node' }, true],
    ['whose cause is no text', { message: 'no node', cause: 7 }, false],
    ['without a message', { cause: 'unschedulable' }, false],
  ])('a carried failure %s', (_what, failure, isKept) => {
    const carried = { ...runnerState({}, RUNNING_POD).toCarriedState(), failure };
    expect(parseCarriedState(carried, Date.now())?.failure).toEqual(isKept ? failure : undefined);
  });

  test('it is carried over', () => {
    const { runner } = after(['in_progress', 'completed']);
    const state = runnerState({}, RUNNING_POD);
    const { jobEndedAt, jobConclusion } = runner;
    Object.assign(state.runner, { jobEndedAt, jobConclusion });
    expect(parseCarriedState(state.toCarriedState(), Date.now())?.runner).toMatchObject({
      jobEndedAt,
      jobConclusion: 'success',
    });
  });
});
