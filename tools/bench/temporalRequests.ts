/** Requests of a worker to Temporal, from its metrics. Pure. */
import { sum, type Sample } from './metrics.ts';

/** Requests that a worker also sends when it is idle. */
const IDLE_REQUESTS: ReadonlySet<string> = new Set([
  'RecordWorkerHeartbeat',
  'GetSystemInfo',
  'DescribeNamespace',
  'GetClusterInfo',
  'ShutdownWorker',
]);

/** Returns the number of requests by operation. A poll counts only if it returned a task. */
export function temporalRequests(samples: readonly Sample[]): Record<string, number> {
  const requests: Record<string, number> = {};
  for (const { name, labels, value } of samples) {
    const { operation = '' } = labels;
    if (name === 'temporal_request_total' && !IDLE_REQUESTS.has(operation))
      requests[operation] = (requests[operation] ?? 0) + value;
  }
  return {
    ...requests,
    'workflow polls answered': sum(samples, 'temporal_workflow_task_queue_poll_succeed_total'),
    'activity polls answered':
      sum(samples, 'temporal_long_request_total', { operation: 'PollActivityTaskQueue' }) -
      sum(samples, 'temporal_activity_poll_no_task_total'),
  };
}

/** Returns the differences between two counts, without zeros. */
export function requestsSince(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Record<string, number> {
  const added = Object.entries(after).map(([key, value]): [string, number] => [
    key,
    value - (before[key] ?? 0),
  ]);
  return Object.fromEntries(added.filter(([, value]) => value !== 0));
}

/** Returns the number of all requests. */
export function totalRequests(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}
