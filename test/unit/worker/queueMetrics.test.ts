/** Metrics that show that an installation is down. */
import { expect, test } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { createHttpServer } from '../../../worker/process/httpServer.ts';
import { registerQueueMetrics } from '../../../worker/process/queueMetrics.ts';

const samples = async (registry: Registry, name: string): Promise<string[]> =>
  (await registry.metrics()).split('\n').filter((line) => line.startsWith(`${name}{`));

test('whether each queue is polled; a queue without a response of Temporal is missing', async () => {
  const registry = new Registry();
  const asked: string[] = [];
  registerQueueMetrics(
    registry,
    [
      { name: 'holdfast', type: 'workflow' },
      { name: 'holdfast-cluster', type: 'activity' },
      { name: 'holdfast-ci-default', type: 'activity' },
    ],
    async ({ name }) => {
      asked.push(name);
      if (name === 'holdfast-ci-default') throw new Error('not connected');
      return name === 'holdfast';
    },
  );
  const expected = [
    'holdfast_task_queue_polled{task_queue="holdfast"} 1',
    'holdfast_task_queue_polled{task_queue="holdfast-cluster"} 0',
  ];
  expect(await samples(registry, 'holdfast_task_queue_polled')).toEqual(expected);
  // The next scrape has the same values.
  expect(await samples(registry, 'holdfast_task_queue_polled')).toEqual(expected);
  expect(asked).toHaveLength(3);
});

test('whether each check of /readyz passes, from the start of the process on', async () => {
  const registry = new Registry();
  const http = createHttpServer({
    process: 'worker',
    logger: pino({ level: 'silent' }),
    registry,
    ready: {
      temporal: async () => Promise.reject(new Error('away')),
      polling: () => false,
      watch: () => true,
    },
  });
  expect(await samples(registry, 'holdfast_ready')).toEqual([
    'holdfast_ready{process="worker",check="temporal"} 0',
    'holdfast_ready{process="worker",check="polling"} 0',
    'holdfast_ready{process="worker",check="watch"} 1',
  ]);
  await http.close();
});
