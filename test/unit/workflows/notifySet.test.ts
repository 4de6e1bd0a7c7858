/** A set that accepts no events must not block its runners, which have a workflow task open in the meantime. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { LocalActivityOptions } from '@temporalio/workflow';
import { notifySet } from '../../../workflows/shared/activityProxies.ts';

interface ScheduledActivity {
  readonly activityType: string;
  readonly options: LocalActivityOptions;
}

/** The global in which the SDK finds the calling workflow. */
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

test('a set is notified for at most half a minute, including all attempts', async () => {
  await notifySet({
    set: 'linux',
    event: {
      kind: 'online',
      workflowId: 'runner-linux-aaaaaaaaaa',
      runnerName: 'linux-aaaaaaaaaa-0a1b2c3d4e',
    },
  });
  expect(scheduled).toMatchObject([
    // There is more than one attempt.
    {
      activityType: 'notifySet',
      options: { scheduleToCloseTimeout: 30_000, startToCloseTimeout: '10s' },
    },
  ]);
  expect(scheduled[0]?.options.retry?.maximumAttempts).toBeUndefined();
});
