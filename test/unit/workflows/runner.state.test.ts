import { describe, expect, test } from '@jest/globals';
import { RunnerState } from '../../../workflows/runner/state.ts';
import { BORN, RUNNING_POD, runnerState } from '../../support/runnerStates.ts';

const { startedAt: _startedAt, ...neverStarted } = RUNNING_POD;

describe('what the verdict goes by of what was asked for', () => {
  const drain = { mode: 'drain', reason: 'a', by: 'drain' } as const;
  const stop = { mode: 'stop', reason: 'b', by: 'cancelled' } as const;
  const ended = { ...RUNNING_POD, ended: true };
  /** Not admitted: there is nobody to show anything to. */
  const running = (): RunnerState => {
    const state = new RunnerState('runner-1', 'f', BORN);
    state.runner.pod = RUNNING_POD;
    return state;
  };

  test('while it runs: the strongest', () => {
    const state = running();
    for (const wanted of [drain, stop]) state.requestCancel(wanted);
    expect([state.cancel, state.verdictCancel]).toEqual([stop, stop]);
  });

  test('a cancel that comes after its end only keeps another from taking its place', () => {
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

describe('the count of lost attempts', () => {
  type Attempt = 'never started' | 'no pod' | 'short' | 'long';
  test.each<[attempts: Attempt[], neverStarted: number, shortLived: number]>([
    [[], 0, 0],
    [['never started'], 1, 1],
    [['no pod'], 1, 1],
    [['never started', 'no pod', 'never started'], 3, 3],
    [['short'], 0, 1],
    [['short', 'short', 'short'], 0, 3],
    // One that lived for long is the first of a new row of short-lived ones.
    [['short', 'short', 'long'], 0, 1],
    [['short', 'short', 'long', 'short'], 0, 2],
    [['never started', 'never started', 'short'], 0, 3],
    [['never started', 'never started', 'long', 'never started'], 1, 2],
  ])('after %j', (attempts, neverStartedInARow, shortLivedInARow) => {
    const state = runnerState();
    for (const attempt of attempts) {
      if (attempt === 'no pod') delete state.runner.pod;
      else state.runner.pod = attempt === 'never started' ? neverStarted : RUNNING_POD;
      state.countLostAttempt(attempt !== 'long');
      state.replaceRunner();
    }
    expect(state).toMatchObject({ neverStartedInARow, shortLivedInARow });
    expect(state.toCarriedState()).toMatchObject({ neverStartedInARow, shortLivedInARow });
  });
});
