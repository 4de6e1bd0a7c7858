import { activityInfo, getClient } from '@temporalio/activity';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import { RUNNER_WORKFLOW } from '../../core/contract/index.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { runnerHash } from '../compute/naming.ts';
import { applicationFailure } from '../shared/failures.ts';
import { callingWorkflowId } from '../shared/callingWorkflow.ts';

/**
 * Requires that the calling workflow is a child of the workflow of this runner. Anyone who may start
 * a workflow can write its input, but only Temporal records the parent, and the name of a runner
 * contains a hash of the execution that it belongs to.
 * @returns the start of the calling workflow
 * @throws ApplicationFailure `ForeignObject` (non-retryable)
 */
export async function requireParentRunner(runnerName: string): Promise<Date> {
  const { workflow } = getClient();
  const runId = activityInfo().workflowExecution?.runId;
  const own = await workflow.getHandle(callingWorkflowId(), runId).describe();
  const parent = own.raw.workflowExecutionInfo?.parentExecution;
  if (parent?.workflowId && parent.runId) {
    const { type, raw } = await workflow.getHandle(parent.workflowId, parent.runId).describe();
    const firstRunId = raw.workflowExecutionInfo?.firstRunId ?? '';
    const hash = runnerHash({ workflowId: parent.workflowId, firstRunId });
    if (type === RUNNER_WORKFLOW && parseRunnerNameHash(runnerName) === hash) return own.startTime;
  }
  throw applicationFailure(
    `runnerName: "${runnerName}" must be a runner of the workflow that started this one; a job runs again only when its runner's own workflow reports the loss`,
    FAILURE_TYPES.foreignObject,
    { final: true },
  );
}
