/** The running runner workflows that a sweep examines. */
import pMap from 'p-map';
import type { WorkflowExecutionInfo } from '@temporalio/client';
import { type RunnerPhase, SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isOpen, isPaused } from '../../core/domain/workflowStatus.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import type { RunnerWorkflow } from '../../core/sweep/facts.ts';
import { assessRunner } from '../../core/sweep/assessRunner.ts';
import type { TaskQueuePollers } from './polledQueues.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';
import type { Lists } from './inventoryLists.ts';

/** Maximum number of concurrent requests to Temporal. */
const AT_ONCE = 10;

/** Returns the name of the runner of a workflow. */
export const runnerNameOf = ({ typedSearchAttributes }: WorkflowExecutionInfo): string =>
  typedSearchAttributes.get(SEARCH_ATTRIBUTES.name) ?? '';

/** Returns the running workflows with their pods. Those that seem to have lost theirs are read again. */
export async function runningRunners(
  { running, pod: pods }: Lists,
  workflows: RunnerWorkflows,
  queues: TaskQueuePollers,
  nowMs: number,
  spec: SweepSpec,
): Promise<RunnerWorkflow[]> {
  const podsOf = Map.groupBy(pods, ({ identity }) => identity?.workflowId ?? '');
  const found = await pMap(
    running,
    async (listed): Promise<RunnerWorkflow[]> => {
      const { workflowId, runId, taskQueue, startTime, parentExecution, typedSearchAttributes } =
        listed;
      const phase = (typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase) ??
        'Requested') as RunnerPhase;
      const job = parentExecution?.workflowId
        ? await workflows.job(parentExecution.workflowId)
        : undefined;
      const runner = {
        workflowId,
        runId,
        taskQueue,
        phase,
        startedAtMs: startTime.getTime(),
        runnerName: runnerNameOf(listed),
        pods: podsOf.get(workflowId) ?? [],
        hasPoller: await queues.isPolled(taskQueue),
        willResume: false,
        ...omitUndefined({ job, paused: isPaused(listed.status) || undefined }),
      };
      return assessRunner(runner, nowMs, spec).kind === 'finding'
        ? await recheckRunner(runner, workflows)
        : [runner];
    },
    { concurrency: AT_ONCE },
  );
  return found.flat();
}

/**
 * Re-reads the workflow of a runner that seems to have lost its pod.
 * @returns an empty list if the workflow has ended since it was listed
 */
export async function recheckRunner(
  runner: RunnerWorkflow,
  workflows: RunnerWorkflows,
): Promise<RunnerWorkflow[]> {
  const description = await workflows.describe(runner.workflowId);
  if (description === undefined || !isOpen(description.status)) return [];
  const { scheduledTime, originalScheduledTime } = description.raw.pendingWorkflowTask ?? {};
  const pendingSince = originalScheduledTime ?? scheduledTime;
  const taskPendingSinceMs = pendingSince ? Number(pendingSince.seconds ?? 0) * 1_000 : undefined;
  const { runId } = description;
  const input = await workflows.input({ workflowId: runner.workflowId, runId });
  return [
    {
      ...runner,
      runId,
      willResume: input?.replacesLost === true,
      ...omitUndefined({
        taskPendingSinceMs,
        paused: isPaused(description.status) || undefined,
      }),
    },
  ];
}
