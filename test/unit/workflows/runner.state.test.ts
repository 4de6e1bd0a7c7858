import { describe, expect, test } from '@jest/globals';
import { RUNNING_POD, runnerState } from '../../support/runnerStates.ts';

const { startedAt: _startedAt, ...neverStarted } = RUNNING_POD;

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
