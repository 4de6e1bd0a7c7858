/** Finds task queues with waiting tasks that no worker polls. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { ciTaskQueue } from '../../core/contract/index.ts';
import { hasRecentPoller } from '../../core/domain/pollers.ts';
import type { PendingActivity } from './pendingActivities.ts';
import type { Session } from './session.ts';

/** Task queue that no worker polls, with the fix. */
export interface UnpolledQueue {
  readonly taskQueue: string;
  readonly fix: string;
}

/** temporal.api.enums.v1.TaskQueueType */
const TYPES = { workflow: 1, activity: 2 } as const;

/** temporal.api.enums.v1.VersioningBehavior */
const PINNED = 1;

/** Version of a Worker Deployment. */
interface Version {
  readonly deploymentName?: string | null;
  readonly buildId?: string | null;
}

/**
 * Returns whether a worker polls a task queue. Each queue is checked once.
 * @param version - count only workers of this version
 */
export type PollCheck = (
  name: string,
  type: keyof typeof TYPES,
  version?: Version,
) => Promise<boolean>;

/**
 * Creates the check. Each call of it may throw.
 * @throws CliError
 */
export function createPollerCheck(session: Session): PollCheck {
  const answers = new Map<string, Promise<boolean>>();
  return async (name, type, version) => {
    const key = `${type} ${name} ${version?.buildId}`;
    const answer = answers.get(key) ?? isPolled(session, name, type, version);
    answers.set(key, answer);
    return await answer;
  };
}

/**
 * Returns the task queues of a workflow and its activities that no worker polls. If that of the
 * workflow is one, it is the only result.
 */
export async function unpolledQueues(
  polled: PollCheck,
  {
    taskQueue,
    status,
    workflowId,
    raw,
  }: Pick<WorkflowExecutionDescription, 'taskQueue' | 'status' | 'workflowId' | 'raw'>,
  activities: readonly PendingActivity[],
): Promise<UnpolledQueue[]> {
  // Temporal dispatches no task of a paused workflow.
  if (status.name !== 'RUNNING') return [];
  if (!(await polled(taskQueue, 'workflow')))
    return [{ taskQueue, fix: fixFor(taskQueue, taskQueue) }];
  const version = pinnedTo(raw);
  if (version !== undefined && !(await polled(taskQueue, 'workflow', version)))
    return [{ taskQueue, fix: fixOfVersion(version, workflowId) }];
  const queues = new Set(
    activities.flatMap((each) =>
      each.state === 'scheduled' && each.taskQueue !== undefined ? [each.taskQueue] : [],
    ),
  );
  const answers = await Promise.all(
    [...queues].map(async (queue) => await polled(queue, 'activity')),
  );
  return [...queues]
    .filter((_, index) => answers[index] === false)
    .map((queue) => ({ taskQueue: queue, fix: fixFor(queue, taskQueue) }));
}

/**
 * Returns the version to which Holdfast has pinned a workflow. An override by an operator is not
 * explained here.
 */
function pinnedTo({
  workflowExecutionInfo,
}: WorkflowExecutionDescription['raw']): Version | undefined {
  const { behavior, deploymentVersion, versioningOverride } =
    workflowExecutionInfo?.versioningInfo ?? {};
  return Number(behavior) === PINNED && !versioningOverride
    ? (deploymentVersion ?? undefined)
    : undefined;
}

function fixOfVersion({ buildId, deploymentName }: Version, workflowId: string): string {
  return `it stays on version ${buildId} of ${deploymentName}, which has no workers; start them again (kubectl get deployments -A -l temporal.io/build-id=${buildId}), or move it to the current version: temporal workflow update-options --workflow-id ${workflowId} --versioning-override-behavior auto_upgrade`;
}

async function isPolled(
  session: Session,
  name: string,
  type: keyof typeof TYPES,
  version: Version | undefined,
): Promise<boolean> {
  const { namespace } = session.settings;
  const { pollers } = await session.call(
    async (client) =>
      await client.workflowService.describeTaskQueue({
        namespace,
        taskQueue: { name },
        taskQueueType: TYPES[type],
      }),
  );
  const those = (pollers ?? []).filter(
    ({ deploymentOptions }) =>
      version === undefined ||
      (deploymentOptions?.buildId === version.buildId &&
        deploymentOptions?.deploymentName === version.deploymentName),
  );
  return hasRecentPoller(
    those.map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000),
    Date.now(),
  );
}

/**
 * Returns what makes a worker poll the queue.
 * @param taskQueue - task queue of the workflow
 */
export function fixFor(queue: string, taskQueue: string): string {
  const ofCredentials = ciTaskQueue(taskQueue, '');
  if (!queue.startsWith(ofCredentials))
    return `start a worker with HOLDFAST_TASK_QUEUE=${taskQueue} ("holdfast worker")`;
  return `no worker with HOLDFAST_TASK_QUEUE=${taskQueue} has the credential "${queue.slice(ofCredentials.length)}": add it to HOLDFAST_CREDENTIALS, and restart that worker`;
}

/** Returns one line of text for each task queue. */
export function unpolledLines(queues: readonly UnpolledQueue[]): string[] {
  return queues.map(({ taskQueue, fix }) => `Not polled:       task queue ${taskQueue}: ${fix}`);
}
