/** Starts the rerun of a job that was lost with its runner. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { ParentClosePolicy, startChild, uuid4 } from '@temporalio/workflow';
import {
  RERUN_WORKFLOW,
  rerunWorkflowId,
  type RerunInput,
  type RerunJob,
  type RunnerCause,
} from '../../core/contract/index.ts';
import { parseJobKey } from '../../core/domain/ciJobState.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import type { EndFacts } from './endFacts.ts';
import type { RunnerJobs } from './jobEvents.ts';
import { lostJobCause } from './runnerLoss.ts';
import type { RunnerState } from './state.ts';

/**
 * Starts the workflow that reruns the job of this runner, if the runner's input asks for it and the
 * job was lost because the runner was taken away.
 *
 * @returns the id of that workflow; `undefined` if the job does not run again
 */
export async function rerunLostJob(
  state: RunnerState,
  facts: EndFacts,
): Promise<string | undefined> {
  const cause = state.spec.rerun === undefined ? undefined : lostJobCause(facts);
  if (cause === undefined) return undefined;
  const input = rerunInput(state, cause, facts);
  const workflowId = rerunWorkflowId(state.runnerName);
  try {
    return await start(workflowId, input);
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    // This workflow was reset, or someone has taken the id. A second rerun finds what the first did.
    return await start(`${workflowId}-${uuid4()}`, input);
  }
}

async function start(workflowId: string, input: RerunInput): Promise<string> {
  await startChild(RERUN_WORKFLOW, {
    workflowId,
    args: [input],
    parentClosePolicy: ParentClosePolicy.ABANDON,
    staticSummary: `rerun the job of ${input.runnerName}`,
  });
  return workflowId;
}

function rerunInput(
  { scope, spec, runnerName, runner }: RunnerState,
  cause: RunnerCause,
  facts: EndFacts,
): RerunInput {
  const record = facts.pod?.exit?.record?.job;
  return {
    [scope.kind]: scope.name,
    credential: spec.credential,
    runnerName,
    cause,
    perRun: spec.rerun?.perRun ?? 1,
    perDay: spec.rerun?.perDay ?? 1,
    ...omitUndefined({
      set: spec.set,
      recorded: record === 'interrupted' || record === 'running' ? (true as const) : undefined,
      stoppedAt: runner.pod?.terminationRequestedAt,
      job: jobToRerun(runner, facts),
      forceCancelAfter: spec.rerun?.forceCancelAfter,
    }),
  };
}

interface JobsOfRunner {
  readonly jobs: Pick<RunnerJobs, 'running'>;
  readonly failedJob?: RerunJob | undefined;
  readonly jobFailedAt?: number | undefined;
  readonly pod?: Pick<PodSnapshot, 'terminationRequestedAt'> | undefined;
}

/**
 * Returns the job that the runner lost, or `undefined` if its workflow has to find it by the
 * runner's name. A job of a static runner that failed before the pod was asked to stop may have
 * failed by itself, and the runner may have lost another one, whose event has not arrived. An
 * ephemeral runner has no other job.
 */
export function jobToRerun(
  { jobs: { running }, failedJob, jobFailedAt, pod }: JobsOfRunner,
  { ephemeral, jobInterrupted }: Pick<EndFacts, 'ephemeral' | 'jobInterrupted'>,
): RerunJob | undefined {
  if (running?.repository !== undefined)
    return { id: parseJobKey(running.key).jobId, repository: running.repository };
  if (ephemeral) return failedJob;
  const requestedAt = Date.parse(pod?.terminationRequestedAt ?? '');
  return jobInterrupted && (jobFailedAt ?? 0) >= requestedAt ? failedJob : undefined;
}
