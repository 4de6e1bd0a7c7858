/**
 * Metric that shows whether any worker polls the task queues. The webhook's process exports it too,
 * so it is available while no worker runs.
 */
import type { Client } from '@temporalio/client';
import { Gauge, type Registry } from 'prom-client';
import { SingleFlight } from '../../activities/ciServers/singleFlight.ts';
import { ciTaskQueue, clusterTaskQueue, listenTaskQueue } from '../../core/contract/index.ts';
import { hasRecentPoller } from '../../core/domain/pollers.ts';

/** temporal.api.enums.v1.TaskQueueType */
const TYPES = { workflow: 1, activity: 2 } as const;
/** Maximum age of a result before Temporal is queried again (ms). */
const AGE_MS = 15_000;
/** Timeout of all requests of one scrape (ms). */
const TIMEOUT_MS = 4_000;

/** Task queue with the type of its tasks. */
export interface ObservedQueue {
  readonly name: string;
  readonly type: keyof typeof TYPES;
}

/**
 * Returns the task queues of an installation.
 * @param credentials - names of the credentials whose queues are included
 */
export function observedQueues(
  taskQueue: string,
  credentials: readonly string[] = [],
): ObservedQueue[] {
  return [
    { name: taskQueue, type: 'workflow' },
    { name: clusterTaskQueue(taskQueue), type: 'activity' },
    { name: listenTaskQueue(taskQueue), type: 'activity' },
    ...credentials.map((credential) => ({
      name: ciTaskQueue(taskQueue, credential),
      type: 'activity' as const,
    })),
  ];
}

/**
 * Registers `holdfast_task_queue_polled`. If a query fails, its queue is missing from the scrape,
 * which succeeds.
 * @param isPolled - returns whether a worker polls the queue
 */
export function registerQueueMetrics(
  registry: Registry,
  queues: readonly ObservedQueue[],
  isPolled: (queue: ObservedQueue) => Promise<boolean>,
): void {
  let known: readonly (readonly [ObservedQueue, boolean])[] = [];
  let at = -Infinity;
  const asking = new SingleFlight(async () => {
    const answers = await Promise.allSettled(queues.map(async (queue) => await isPolled(queue)));
    known = queues.flatMap((queue, index) => {
      const answer = answers[index];
      return answer?.status === 'fulfilled' ? [[queue, answer.value] as const] : [];
    });
    at = performance.now();
  });
  const gauge: Gauge = new Gauge({
    name: 'holdfast_task_queue_polled',
    help: '1 if a worker polls the task queue of Temporal, else 0',
    labelNames: ['task_queue'],
    registers: [registry],
    collect: async () => {
      if (performance.now() - at > AGE_MS) await asking.run();
      gauge.reset();
      for (const [{ name }, polled] of known) gauge.set({ task_queue: name }, polled ? 1 : 0);
    },
  });
}

/**
 * Returns a function that queries Temporal for the pollers of a queue.
 * @param client - returns the current client, or `undefined` before there is one
 */
export function pollerCheck(
  client: () => Client | undefined,
  namespace: string,
): (queue: ObservedQueue) => Promise<boolean> {
  return async ({ name, type }) => {
    const connected = client();
    if (connected === undefined) throw new Error('not connected to Temporal yet');
    const { pollers } = await connected.connection.withDeadline(
      Date.now() + TIMEOUT_MS,
      async () =>
        await connected.workflowService.describeTaskQueue({
          namespace,
          taskQueue: { name },
          taskQueueType: TYPES[type],
        }),
    );
    const accesses = (pollers ?? []).map(
      ({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000,
    );
    return hasRecentPoller(accesses, Date.now());
  };
}
