import { expect, test } from '@jest/globals';
import { PollBudget } from '../../../activities/ciServers/github/pollBudget.ts';
import { ManualClock } from '../../support/manualClock.ts';

test('all callers share a number of requests per period; further ones must wait for the next period', async () => {
  const clock = new ManualClock();
  const budget = new PollBudget({ requests: 3, everyMs: 3_600_000 }, clock);
  const spend = (): number => {
    let spent = 0;
    for (; budget.left; spent++) budget.spend();
    return spent;
  };
  expect([spend(), spend()]).toEqual([3, 0]);
  await clock.advance(3_599_000);
  expect([budget.left, budget.renewsInMs]).toEqual([false, 1_000]);
  await clock.advance(1_001);
  expect(spend()).toBe(3);
});
