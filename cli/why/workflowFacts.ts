/** Reads the facts of any workflow from its description. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PendingFact, WorkflowFacts } from '../../core/why/facts.ts';
import { pauseInfo, pauseText } from '../../worker/temporal/pauseInfo.ts';
import { pendingActivities, type PendingActivity } from '../shared/pendingActivities.ts';
import type { Session } from '../shared/session.ts';
import { createPollerCheck, unpolledQueues } from '../shared/unpolledQueues.ts';

/** Returns the facts that a workflow's description contains. @throws CliError */
export async function workflowFacts(
  session: Session,
  description: WorkflowExecutionDescription,
): Promise<WorkflowFacts> {
  const { workflowId, runId, raw } = description;
  const pending = await pendingActivities(raw, session.converter);
  const paused = pauseInfo(description);
  return {
    id: workflowId,
    pending: pending.map(pendingFact),
    unpolled: await unpolledQueues(createPollerCheck(session), description, pending),
    ...omitUndefined({
      url: session.link(workflowId, runId),
      paused: paused && {
        text: pauseText(paused),
        ...omitUndefined({ since: paused.since }),
      },
    }),
  };
}

/** Whether no worker polls the task queue of the workflow itself. */
export const isUnpolled = (
  { unpolled }: WorkflowFacts,
  description: Pick<WorkflowExecutionDescription, 'taskQueue'>,
): boolean => unpolled.some(({ taskQueue }) => taskQueue === description.taskQueue);

function pendingFact(activity: PendingActivity): PendingFact {
  const { type, state, attempt, taskQueue, lastFailure, nextRetryAt } = activity;
  return {
    type,
    scheduled: state === 'scheduled',
    attempt,
    ...omitUndefined({
      taskQueue,
      failureType: activity.lastFailureType,
      lastFailure,
      nextRetryAt,
    }),
  };
}
