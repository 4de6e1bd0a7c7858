/** Task queues that something waits on and no worker polls: a wait that would else say nothing. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { ciTaskQueue } from '../../../core/contract/index.ts';
import { hasPolledOfLate } from '../../../core/domain/pollers.ts';
import type { PendingActivity } from './pendingActivities.ts';
import type { Session } from './session.ts';

export interface UnpolledQueue {
  readonly taskQueue: string;
  readonly fix: string;
}

/** temporal.api.enums.v1.TaskQueueType */
const TYPES = { workflow: 1, activity: 2 } as const;

/** Whether a worker polls a task queue, each queue asked about once. */
export type PollCheck = (name: string, type: keyof typeof TYPES) => Promise<boolean>;

/** @throws CliError, in each call */
export function pollCheck(session: Session): PollCheck {
  const answers = new Map<string, Promise<boolean>>();
  return async (name, type) => {
    const key = `${type} ${name}`;
    const answer = answers.get(key) ?? isPolled(session, name, type);
    answers.set(key, answer);
    return await answer;
  };
}

/** @returns at most one per queue; none of the others where the workflow's own has no worker */
export async function unpolledQueues(polled: PollCheck, { taskQueue, status }: Pick<WorkflowExecutionDescription, 'taskQueue' | 'status'>, activities: readonly PendingActivity[]): Promise<UnpolledQueue[]> {
  if (status.name !== 'RUNNING') return [];
  if (!(await polled(taskQueue, 'workflow'))) return [{ taskQueue, fix: fixOf(taskQueue, taskQueue) }];
  const queues = new Set(activities.flatMap((each) => (each.state === 'scheduled' && each.taskQueue !== undefined ? [each.taskQueue] : [])));
  const answers = await Promise.all([...queues].map(async (queue) => await polled(queue, 'activity')));
  return [...queues].filter((_, index) => answers[index] === false).map((queue) => ({ taskQueue: queue, fix: fixOf(queue, taskQueue) }));
}

async function isPolled(session: Session, name: string, type: keyof typeof TYPES): Promise<boolean> {
  const { namespace } = session.settings;
  const { pollers } = await session.call(async (client) => await client.workflowService.describeTaskQueue({ namespace, taskQueue: { name }, taskQueueType: TYPES[type] }));
  return hasPolledOfLate((pollers ?? []).map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000), Date.now());
}

/** What makes a worker poll the queue. @param taskQueue - the workflow's own */
export function fixOf(queue: string, taskQueue: string): string {
  const ofCredentials = ciTaskQueue(taskQueue, '');
  if (!queue.startsWith(ofCredentials)) return `start a worker with HOLDFAST_TASK_QUEUE=${taskQueue} ("holdfast worker")`;
  return `no worker with HOLDFAST_TASK_QUEUE=${taskQueue} has the credential "${queue.slice(ofCredentials.length)}": add it to HOLDFAST_CREDENTIALS, and restart that worker`;
}

export function unpolledLines(queues: readonly UnpolledQueue[]): string[] {
  return queues.map(({ taskQueue, fix }) => `Nobody polls:     task queue ${taskQueue}: ${fix}`);
}
