/** What a call's end means: failed with an answer, out of time, never tried, interrupted. */
import { describe, expect, test } from '@jest/globals';
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  RetryState,
  TimeoutFailure,
  TimeoutType,
} from '@temporalio/common';
import { mayHaveCreated, shouldRetry } from '../../../workflows/runner/bringUp.ts';
import {
  afterInterrupt,
  toCallResult,
  type CallResult,
} from '../../../workflows/shared/activityProxies.ts';

const refused = ApplicationFailure.nonRetryable('Bad credentials', 'CredentialsRejected');
const timeout = (cause?: Error): TimeoutFailure =>
  Object.assign(
    new TimeoutFailure('activity timeout', undefined, TimeoutType.SCHEDULE_TO_CLOSE),
    cause && { cause },
  );
const ofActivity = (cause: Error): ActivityFailure =>
  new ActivityFailure('failed', 'provision', '1', RetryState.TIMEOUT, 'worker', cause);

const REFUSED = {
  kind: 'failed',
  type: 'CredentialsRejected',
  message: 'Bad credentials',
  timedOut: false,
  untried: false,
} as const;
const OUT_OF_TIME = { ...REFUSED, timedOut: true } as const;
const CUT_OFF = { ...OUT_OF_TIME, type: 'Timeout', message: 'activity timeout' } as const;
const UNTRIED = { ...CUT_OFF, untried: true } as const;

describe('a failed call as data', () => {
  test.each<[what: string, error: Error, expected: CallResult<never>]>([
    ['an answer', ofActivity(refused), REFUSED],
    ['an answer of a local activity', refused, REFUSED],
    ['time ran out; the last try had an answer', ofActivity(timeout(refused)), OUT_OF_TIME],
    ['time ran out under a try that was cut off', ofActivity(timeout(timeout())), CUT_OFF],
    ['time ran out before the first try', ofActivity(timeout()), UNTRIED],
    ['the same of a local activity', timeout(), UNTRIED],
    ['cancelled', ofActivity(new CancelledFailure('cancelled')), { kind: 'interrupted' }],
    ['a local activity was cancelled', new CancelledFailure('cancelled'), { kind: 'interrupted' }],
    [
      'an answer without a type',
      ofActivity(new ApplicationFailure('why')),
      { ...REFUSED, type: 'Unknown', message: 'why' },
    ],
  ])('%s', async (_what, error, expected) => {
    expect(await toCallResult(Promise.reject(error))).toEqual(expected);
  });

  test('a result stays one', async () => {
    expect(await toCallResult(Promise.resolve(7))).toEqual({ kind: 'done', value: 7 });
  });

  test('a defect of the workflow is thrown on', async () => {
    const defect = new TypeError('x is not a function');
    await expect(toCallResult(Promise.reject(defect))).rejects.toBe(defect);
  });
});

describe('a call that was interrupted', () => {
  test.each<[what: string, last: CallResult<number>, expected: CallResult<number>]>([
    ['has its result all the same', { kind: 'done', value: 7 }, { kind: 'done', value: 7 }],
    [
      'left off with an answer',
      REFUSED,
      { kind: 'interrupted', lastFailure: 'CredentialsRejected' },
    ],
    ['ran out of time: nobody knows what its last try does', OUT_OF_TIME, { kind: 'interrupted' }],
    ['ended without a word', { kind: 'interrupted' }, { kind: 'interrupted' }],
  ])('%s', (_what, last, expected) => {
    expect(afterInterrupt(last)).toEqual(expected);
  });
});

describe('a provisioning that is not done', () => {
  const taken = { ...REFUSED, type: 'RunnerNameTaken' } as const;
  const unavailable = { ...REFUSED, type: 'CiServerUnavailable' } as const;
  type Left = Parameters<typeof mayHaveCreated>[0];
  test.each<[what: string, called: Left, created: boolean, again: boolean]>([
    ['was refused', REFUSED, false, false],
    ['met a name that is taken', taken, false, true],
    ['had no clear answer', unavailable, true, false],
    ['ran out of time after an answer: a try may still be at work', OUT_OF_TIME, true, false],
    ['ran out of time under a try', CUT_OFF, true, false],
    ['never had its turn', UNTRIED, false, true],
    ['was interrupted without a word', { kind: 'interrupted' }, true, false],
    [
      'was interrupted after an answer',
      { kind: 'interrupted', lastFailure: 'CredentialsRejected' },
      false,
      false,
    ],
  ])('%s', (_what, called, created, again) => {
    expect([mayHaveCreated(called), shouldRetry(called, 1)]).toEqual([created, again]);
  });

  test('looks for a free name three times', () => {
    expect([1, 2, 3].map((names) => shouldRetry(taken, names))).toEqual([true, true, false]);
  });
});
