/** A set that takes no events must not hold up its runners: each has a workflow task open meanwhile. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { LocalActivityOptions } from '@temporalio/workflow';
import { notifySet } from '../../../workflows/shared/activityProxies.ts';

interface ScheduledActivity {
  readonly activityType: string;
  readonly options: LocalActivityOptions;
}

/** Where the SDK looks for the workflow that calls. */
const sdk = globalThis as { __TEMPORAL_ACTIVATOR__?: unknown };
const scheduled: ScheduledActivity[] = [];

beforeEach(() => {
  sdk.__TEMPORAL_ACTIVATOR__ = {
    nextSeqs: { activity: 1 },
    bindCurrentRandom: (call: unknown) => call,
    interceptors: {
      outbound: [
        { scheduleLocalActivity: async (input: ScheduledActivity) => void scheduled.push(input) },
      ],
    },
  };
});
afterEach(() => void delete sdk.__TEMPORAL_ACTIVATOR__);

test('a set is notified for half a minute at most, all tries included', async () => {
  await notifySet({
    set: 'linux',
    event: {
      kind: 'online',
      workflowId: 'runner-linux-aaaaaaaaaa',
      runnerName: 'linux-aaaaaaaaaa-0a1b2c3d4e',
    },
  });
  expect(scheduled).toMatchObject([
    // It has more than one try.
    {
      activityType: 'notifySet',
      options: { scheduleToCloseTimeout: 30_000, startToCloseTimeout: '10s' },
    },
  ]);
  expect(scheduled[0]?.options.retry?.maximumAttempts).toBeUndefined();
});
