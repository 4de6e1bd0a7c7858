/** Whoever may start a workflow gives it any search attribute: one that says that a task queue is another place's must not keep its workers from starting. */
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RUNNER_WORKFLOW, SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { runningRunnersQuery } from '../../core/domain/visibility.ts';
import { checkLocation } from '../../worker/checks/locationCheck.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

const HERE = { compute: 'process', cluster: 'm1', installation: 'mine' } as const;
const THERE = 'kubernetes/c1/theirs/ci';

await describeWithLab(
  'users who can start a workflow, and the location of a task queue',
  { temporal: true },
  (lab) => {
    let connection: Connection;
    let client: Client;
    beforeAll(async () => {
      connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
      client = new Client({ connection });
    });
    afterAll(async () => await connection.close());

    async function check(taskQueue: string): Promise<string> {
      await until(
        'a runner of the queue to be listed with its location',
        async () =>
          (
            await client.workflow.count(
              `${runningRunnersQuery(taskQueue)} AND ${SEARCH_ATTRIBUTES.place.name} IS NOT NULL`,
            )
          ).count > 0,
      );
      const config = { taskQueue, temporal: { namespace: 'default' } } as Parameters<
        typeof checkLocation
      >[0];
      const { level, message } = await checkLocation(config, connection, async () => HERE);
      expect(message).toContain('is used for runners in');
      return level;
    }

    test('a forged location is a warning', async () => {
      const taskQueue = `forged-${randomUUID().slice(0, 8)}`;
      const handle = await client.workflow.start(RUNNER_WORKFLOW, {
        taskQueue,
        workflowId: `runner-${taskQueue}`,
        typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.place, value: THERE }],
      });
      try {
        expect(await check(taskQueue)).toBe('warning');
      } finally {
        await handle.terminate();
      }
    });

    test('a location from a worker rejects a worker of another location, even next to a forged one', async () => {
      const { world } = await memoryWorld(lab);
      const forged = await client.workflow.start(RUNNER_WORKFLOW, {
        taskQueue: world.taskQueue,
        workflowId: `runner-${world.taskQueue}`,
        typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.place, value: THERE }],
        // Its first task comes later than the test.
        startDelay: '1h',
      });
      try {
        await world.start();
        await until('it to be refused', async () => (await check(world.taskQueue)) === 'error');
      } finally {
        await forged.terminate();
        await world.close();
      }
    });
  },
);
