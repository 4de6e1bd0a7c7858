/** The requests of a worker to Temporal, by its own count. Pure. */
import { sum, type Sample } from './metrics.ts';

/** What a worker asks for whether or not it has anything to do. */
const UNASKED: ReadonlySet<string> = new Set([
  'RecordWorkerHeartbeat',
  'GetSystemInfo',
  'DescribeNamespace',
  'GetClusterInfo',
  'ShutdownWorker',
]);

/** By operation. A poll counts when it was answered with a task: an empty one is only waiting. */
export function temporalRequests(samples: readonly Sample[]): Record<string, number> {
  const requests: Record<string, number> = {};
  for (const { name, labels, value } of samples) {
    const { operation = '' } = labels;
    if (name === 'temporal_request_total' && !UNASKED.has(operation))
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

/** What has been added since, without zeros. */
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

/** Of all kinds together. */
export function totalRequests(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}
