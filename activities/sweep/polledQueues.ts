import type { Client } from '@temporalio/client';
import { clusterTaskQueue } from '../../core/contract/index.ts';
import { hasRecentPoller } from '../../core/domain/pollers.ts';

/** temporal.api.enums.v1.TaskQueueType */
const TYPES = { workflow: 1, activity: 2 } as const;
const CHECK_INTERVAL_MS = 10_000;

/** Returns which task queues have a worker. Each queue is checked once per instance. */
export class TaskQueuePollers {
  readonly #client: Client;
  readonly #now: () => number;
  readonly #asked = new Map<string, Promise<boolean>>();

  /** @param now - returns the time (ms since the epoch), for which the polls must be recent */
  constructor(client: Client, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /**
   * Returns whether a worker polls this task queue, for workflows or activities, or its cluster
   * task queue.
   */
  async isPolled(taskQueue: string): Promise<boolean> {
    const asked = this.#asked.get(taskQueue) ?? this.#ask(taskQueue);
    this.#asked.set(taskQueue, asked);
    return await asked;
  }

  async #ask(taskQueue: string): Promise<boolean> {
    const polled = await Promise.all([
      this.#hasPoller(taskQueue, 'workflow'),
      this.#hasPoller(taskQueue, 'activity'),
      this.#hasPoller(clusterTaskQueue(taskQueue), 'activity'),
    ]);
    return polled.includes(true);
  }

  async #hasPoller(name: string, type: keyof typeof TYPES): Promise<boolean> {
    const { namespace } = this.#client.options;
    const { pollers } = await this.#client.withDeadline(
      Date.now() + CHECK_INTERVAL_MS,
      async () =>
        await this.#client.workflowService.describeTaskQueue({
          namespace,
          taskQueue: { name },
          taskQueueType: TYPES[type],
        }),
    );
    return hasRecentPoller(
      (pollers ?? []).map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000),
      // The clock of Temporal may differ from both clocks here. The earlier time is used, so that a
      // queue rather counts as polled: the sweep terminates workflows only if no worker polls.
      Math.min(Date.now(), this.#now()),
    );
  }
}
