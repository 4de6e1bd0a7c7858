import { inspect } from 'node:util';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { applicationFailure, toFailure } from '../../../activities/shared/failures.ts';
import { CiServerError } from '../../../activities/ports/ciServerError.ts';
import { ComputeError } from '../../../activities/ports/computeError.ts';
import { UnknownCredentialError } from '../../../activities/ports/ciServer.ts';
import { FAILURE_TYPES } from '../../../core/activities/index.ts';

const pace = { credentialsRetryMs: 300_000 };
const ci = (kind: CiServerError['kind'], more: { retryAfterMs?: number } = {}) =>
  new CiServerError(kind, `what ${kind} says`, more);
const compute = (kind: ComputeError['kind'], more: { retryAfterMs?: number } = {}) =>
  new ComputeError(kind, `what ${kind} says`, more);

afterEach(() => {
  jest.restoreAllMocks();
});

interface Expected {
  readonly type: string;
  /** Delay of the retry, or `undefined` for the retry policy's own backoff. */
  readonly delayMs?: number;
  readonly benign?: true;
  readonly final?: true;
}

describe('every error as a Temporal failure', () => {
  test.each<[what: string, error: Error, expected: Expected]>([
    [
      'rate limited',
      ci('rate_limited', { retryAfterMs: 61_000 }),
      { type: 'RateLimited', delayMs: 61_000, benign: true },
    ],
    ['credentials rejected', ci('credentials'), { type: 'CredentialsRejected', delayMs: 300_000 }],
    ['busy, no delay given', ci('busy'), { type: 'RunnerBusy', delayMs: 1_000, benign: true }],
    ['name taken', ci('name_taken'), { type: 'RunnerNameTaken', final: true }],
    ['rejected', ci('rejected'), { type: 'CiServerRejected', final: true }],
    ['CI server unavailable', ci('unavailable'), { type: 'CiServerUnavailable', delayMs: 1_000 }],
    [
      'CI server unreachable',
      ci('unavailable', { retryAfterMs: 1_500 }),
      { type: 'CiServerUnavailable', delayMs: 1_500 },
    ],
    [
      'unknown credential',
      new UnknownCredentialError('what unknown says'),
      { type: 'UnknownCredential', delayMs: 300_000 },
    ],
    ['quota exceeded', compute('quota_exceeded'), { type: 'QuotaExceeded', delayMs: 30_000 }],
    ['pod rejected', compute('invalid'), { type: 'PodInvalid', final: true }],
    ['no permission', compute('forbidden'), { type: 'ComputeForbidden', delayMs: 1_000 }],
    [
      'API server unavailable',
      compute('unavailable'),
      { type: 'ComputeUnavailable', delayMs: 1_000 },
    ],
    [
      'API server unavailable, with a time',
      compute('unavailable', { retryAfterMs: 7_000 }),
      { type: 'ComputeUnavailable', delayMs: 7_000 },
    ],
    [
      'quota exceeded, with a time',
      compute('quota_exceeded', { retryAfterMs: 1_000 }),
      { type: 'QuotaExceeded', delayMs: 1_000 },
    ],
  ])('%s', (_what, error, { type, delayMs, benign, final }) => {
    const failed = toFailure(error, pace, { rejectionIsFinal: true }) as ApplicationFailure;
    expect(failed).toBeInstanceOf(ApplicationFailure);
    expect({
      type: failed.type,
      delay: failed.nextRetryDelay,
      final: failed.nonRetryable,
      message: failed.message,
    }).toEqual({
      type,
      delay: delayMs,
      final: final === true,
      message: error.message,
    });
    expect(failed.category).toBe(benign === true ? ApplicationFailureCategory.BENIGN : undefined);
    // A cause may contain a request with its credential, so it must not get into history.
    expect(failed.cause).toBeUndefined();
  });

  test('a rejection is not final if a registration has to be removed', () => {
    expect(toFailure(ci('rejected'), pace, { rejectionIsFinal: false })).toMatchObject({
      type: 'CiServerRejected',
      nonRetryable: false,
      nextRetryDelay: 1_000,
    });
    expect(toFailure(ci('rejected'), pace, { rejectionIsFinal: false, times: 10 })).toMatchObject({
      nextRetryDelay: 60_000,
    });
  });

  test.each<ComputeError['kind']>(['quota_exceeded', 'invalid', 'forbidden', 'unavailable'])(
    'no response of the cluster is final for a required action: %s',
    (kind) => {
      expect(toFailure(compute(kind), pace, { rejectionIsFinal: false })).toMatchObject({
        nonRetryable: false,
        message: `what ${kind} says`,
      });
    },
  );

  test('a denied deletion is retried every minute, with a separate failure type', () => {
    expect(toFailure(compute('invalid'), pace, { rejectionIsFinal: false })).toMatchObject({
      type: 'ComputeRejected',
      nextRetryDelay: 60_000,
    });
  });

  test('the cause of an error, which may contain a secret, is not passed on', () => {
    const told = toFailure(
      new CiServerError('unavailable', 'no answer', { cause: new Error('Authorization: SECRET') }),
      pace,
      { rejectionIsFinal: true },
    ) as Error;
    expect(inspect(told, { depth: null, showHidden: true })).not.toContain('SECRET');
  });

  test('the delay of a busy runner varies by 10 %', () => {
    const delays = Array.from({ length: 500 }, () =>
      Number(
        (
          toFailure(
            ci('busy'),
            { ...pace, busyRetryMs: 60_000 },
            { rejectionIsFinal: false },
          ) as ApplicationFailure
        ).nextRetryDelay,
      ),
    );
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(54_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(66_000);
    expect(new Set(delays).size).toBeGreaterThan(10);
  });

  test.each([ci('unavailable'), compute('unavailable'), compute('forbidden')])(
    'the delay after short failures doubles up to a minute: %p',
    (error) => {
      const delays = [1, 2, 3, 6, 7, 2_000].map(
        (times) =>
          (toFailure(error, pace, { rejectionIsFinal: false, times }) as ApplicationFailure)
            .nextRetryDelay,
      );
      expect(delays).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
    },
  );

  test('the delay of a busy runner doubles only if it may', () => {
    const delays = (more: object): unknown[] => {
      jest.spyOn(Math, 'random').mockReturnValue(0.5);
      return [1, 2, 3, 5, 50].map(
        (times) =>
          (
            toFailure(
              ci('busy'),
              { ...pace, busyRetryMs: 60_000, ...more },
              { rejectionIsFinal: false, times },
            ) as ApplicationFailure
          ).nextRetryDelay,
      );
    };
    expect(delays({})).toEqual([60_000, 60_000, 60_000, 60_000, 60_000]);
    expect(delays({ maxBusyRetryMs: 900_000 })).toEqual([
      60_000, 120_000, 240_000, 900_000, 900_000,
    ]);
  });

  test.each([new Error('a defect'), new TypeError('x'), 'a text', undefined])(
    'any other error is returned unchanged: %p',
    (error) => {
      expect(toFailure(error, pace, { rejectionIsFinal: true })).toBe(error);
    },
  );
});

test('failure types are stable: workflows, dashboards and users match them', () => {
  expect(FAILURE_TYPES).toEqual({
    foreignObject: 'ForeignObject',
    setNotFound: 'SetNotFound',
    setCommandRejected: 'SetCommandRejected',
    setUnresponsive: 'SetUnresponsive',
    busy: 'RunnerBusy',
    rate_limited: 'RateLimited',
    credentials: 'CredentialsRejected',
    name_taken: 'RunnerNameTaken',
    rejected: 'CiServerRejected',
    conflict: 'ScaleSetSessionHeld',
    session_lost: 'ScaleSetSessionLost',
    unavailable: 'CiServerUnavailable',
    notOnline: 'RunnerNotOnlineYet',
    jobNotEnded: 'JobNotEndedYet',
    volumeClaimFenced: 'VolumeClaimFenced',
    invalidInput: 'InvalidInput',
    superseded: 'ProvisioningSuperseded',
    unknownCredential: 'UnknownCredential',
    quota_exceeded: 'QuotaExceeded',
    podInvalid: 'PodInvalid',
    computeRejected: 'ComputeRejected',
    computeForbidden: 'ComputeForbidden',
    computeUnavailable: 'ComputeUnavailable',
    wrongLocation: 'WrongLocation',
    foreignRegistration: 'ForeignRegistration',
    notVisible: 'PodNotVisible',
    sweepIncomplete: 'SweepIncomplete',
  });
});

test('a failure is retried by the policy, and logged, unless it is marked otherwise', () => {
  const plain = applicationFailure('m', 'T');
  expect({
    retry: !plain.nonRetryable,
    delay: plain.nextRetryDelay,
    category: plain.category,
  }).toEqual({ retry: true, delay: undefined, category: undefined });
  expect(
    applicationFailure('m', 'T', { nextRetryDelayMs: 5, expected: true, final: true }),
  ).toMatchObject({
    nonRetryable: true,
    nextRetryDelay: 5,
    category: ApplicationFailureCategory.BENIGN,
  });
});
