/** Results of a call: failed with a response, timed out, never attempted, interrupted. */
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
    ['an error of a local activity', refused, REFUSED],
    ['timed out after an attempt with an error', ofActivity(timeout(refused)), OUT_OF_TIME],
    ['timed out during an attempt', ofActivity(timeout(timeout())), CUT_OFF],
    ['timed out before the first attempt', ofActivity(timeout()), UNTRIED],
    ['a local activity timed out before the first attempt', timeout(), UNTRIED],
    ['cancelled', ofActivity(new CancelledFailure('cancelled')), { kind: 'interrupted' }],
    ['a local activity was cancelled', new CancelledFailure('cancelled'), { kind: 'interrupted' }],
    [
      'an error without a type',
      ofActivity(new ApplicationFailure('why')),
      { ...REFUSED, type: 'Unknown', message: 'why' },
    ],
  ])('%s', async (_what, error, expected) => {
    expect(await toCallResult(Promise.reject(error))).toEqual(expected);
  });

  test('a result is returned', async () => {
    expect(await toCallResult(Promise.resolve(7))).toEqual({ kind: 'done', value: 7 });
  });

  test('a defect of the workflow is rethrown', async () => {
    const defect = new TypeError('x is not a function');
    await expect(toCallResult(Promise.reject(defect))).rejects.toBe(defect);
  });
});

describe('an interrupted call', () => {
  test.each<[what: string, last: CallResult<number>, expected: CallResult<number>]>([
    ['keeps its result', { kind: 'done', value: 7 }, { kind: 'done', value: 7 }],
    ['keeps its error', REFUSED, { kind: 'interrupted', lastFailure: 'CredentialsRejected' }],
    ['timed out: the effect of its last attempt is unknown', OUT_OF_TIME, { kind: 'interrupted' }],
    ['ended without a response', { kind: 'interrupted' }, { kind: 'interrupted' }],
  ])('%s', (_what, last, expected) => {
    expect(afterInterrupt(last)).toEqual(expected);
  });
});

describe('an incomplete provisioning', () => {
  const taken = { ...REFUSED, type: 'RunnerNameTaken' } as const;
  const unavailable = { ...REFUSED, type: 'CiServerUnavailable' } as const;
  type Left = Parameters<typeof mayHaveCreated>[0];
  test.each<[what: string, called: Left, created: boolean, again: boolean]>([
    ['was rejected', REFUSED, false, false],
    ['found its name in use', taken, false, true],
    ['had an ambiguous response', unavailable, true, false],
    ['timed out after an error: an attempt may still be running', OUT_OF_TIME, true, false],
    ['timed out during an attempt', CUT_OFF, true, false],
    ['was never attempted', UNTRIED, false, true],
    ['was interrupted without a response', { kind: 'interrupted' }, true, false],
    [
      'was interrupted after an error',
      { kind: 'interrupted', lastFailure: 'CredentialsRejected' },
      false,
      false,
    ],
  ])('%s', (_what, called, created, again) => {
    expect([mayHaveCreated(called), shouldRetry(called, 1)]).toEqual([created, again]);
  });

  test('tries three names', () => {
    expect([1, 2, 3].map((names) => shouldRetry(taken, names))).toEqual([true, true, false]);
  });
});
