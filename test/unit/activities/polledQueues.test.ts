/** Whether a task queue has a worker, for a sweep whose cluster has another time. */
import { expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { TaskQueuePollers } from '../../../activities/sweep/polledQueues.ts';

const MINUTE_MS = 60_000;

const clientPolledAt = (atMs: number): Client =>
  ({
    options: { namespace: 'default' },
    withDeadline: async (_deadline: number, call: () => Promise<unknown>) => await call(),
    workflowService: {
      describeTaskQueue: async () => ({
        pollers: [{ lastAccessTime: { seconds: Math.floor(atMs / 1_000) } }],
      }),
    },
  }) as unknown as Client;

test.each<[what: string, polledAgoMs: number, clusterAheadMs: number, polled: boolean]>([
  ['polled now', 0, 0, true],
  ['polled now, by a cluster whose clock is ahead', 0, 10 * MINUTE_MS, true],
  ['polled now, by a cluster whose clock is behind', 0, -10 * MINUTE_MS, true],
  ['polled long ago', 10 * MINUTE_MS, 0, false],
  ['polled long ago, by a cluster whose clock is ahead', 10 * MINUTE_MS, 10 * MINUTE_MS, false],
])('%s', async (_what, polledAgoMs, clusterAheadMs, polled) => {
  const pollers = new TaskQueuePollers(
    clientPolledAt(Date.now() - polledAgoMs),
    () => Date.now() + clusterAheadMs,
  );
  expect(await pollers.isPolled('q')).toBe(polled);
});
