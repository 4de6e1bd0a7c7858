import { describe, expect, test } from '@jest/globals';
import { pauseInfo, pauseText } from '../../../worker/temporal/pauseInfo.ts';

const described = (name: string, details: object = {}) =>
  ({ status: { name }, raw: { workflowExtendedInfo: details } }) as never;
const details = {
  pauseInfo: {
    pausedTime: { seconds: 1_790_000_000 },
    identity: 'ada@desk',
    reason: 'a look at its node',
  },
};

describe('the pause of a workflow in Temporal', () => {
  test('has a time, an author and a reason', () => {
    const pause = pauseInfo(described('PAUSED', details));
    expect(pause).toEqual({
      since: '2026-09-21T14:13:20.000Z',
      by: 'ada@desk',
      reason: 'a look at its node',
    });
    expect(pauseText(pause ?? {})).toBe(
      'in Temporal since 2026-09-21T14:13:20.000Z by ada@desk (a look at its node)',
    );
  });

  test('is detected if the server reports only the status', () => {
    expect(pauseInfo(described('PAUSED'))).toEqual({});
    expect(pauseText({})).toBe('in Temporal');
  });

  test('is over as soon as the workflow runs, even if its details remain', () => {
    expect(pauseInfo(described('RUNNING', details))).toBeUndefined();
  });
});
