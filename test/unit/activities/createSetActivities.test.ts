/** Activities of sets. Everyone who may schedule an activity may give them any input. */
import { expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ActivityPorts } from '../../../activities/ports/activityPorts.ts';
import { createSetActivities } from '../../../activities/runnerSet/createSetActivities.ts';
import { RunnerEventBatcher } from '../../../activities/runnerSet/runnerEventBatcher.ts';
import type { CheckQueuedJobsInput } from '../../../core/activities/index.ts';

const INPUT: CheckQueuedJobsInput = {
  set: 'linux',
  taskQueue: 'holdfast',
  scope: { kind: 'organization', name: 'acme' },
  credential: 'default',
  labels: ['linux'],
  requestedAt: 1_000_000,
  maxAgeMs: 0,
  overdue: [],
  reroutedHere: [],
  // So that the sets are listed.
  reroutedTo: ['set-other'],
};

test('a queue check lists the sets of its own task queue, and of no other', async () => {
  const queries: string[] = [];
  const client = {
    withDeadline: async (_deadline: number, run: () => unknown) => await run(),
    withAbortSignal: async (_signal: AbortSignal, run: () => unknown) => await run(),
    workflow: {
      list: ({ query }: { query: string }) => {
        queries.push(query);
        return [];
      },
      getHandle: () => ({ signal: async () => undefined }),
    },
  } as unknown as Client;
  const server = { kind: 'github', listQueuedJobs: async () => ({ jobs: [], complete: true }) };
  const ports = { ciServers: { get: () => server } } as unknown as ActivityPorts;
  const activities = createSetActivities(ports, new RunnerEventBatcher());
  const check = async (more: Partial<CheckQueuedJobsInput>): Promise<unknown> =>
    await new MockActivityEnvironment({ taskQueue: 'holdfast-ci-default' }, { client }).run(
      async () => await activities.checkQueuedJobs({ ...INPUT, ...more }),
    );
  for (const more of [
    { taskQueue: '' },
    { taskQueue: 'other' },
    { taskQueue: 'x'.repeat(10_000) },
    { credential: 'other' },
  ])
    await expect(check(more)).rejects.toMatchObject({
      type: 'InvalidInput',
      nonRetryable: true,
      message: expect.stringContaining('taskQueue must be'),
    });
  expect(queries).toEqual([]);
  // Both checks share one list.
  expect([await check({}), await check({})]).toEqual([{ supported: true }, { supported: true }]);
  expect(queries).toEqual([expect.stringContaining('holdfast')]);
});
