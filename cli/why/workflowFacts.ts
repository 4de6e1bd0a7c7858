/** Facts of any workflow, from its description. */
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PendingFact, WorkflowFacts } from '../../core/why/facts.ts';
import { pauseInfo, pauseText } from '../../worker/temporal/pauseInfo.ts';
import { pendingActivities, type PendingActivity } from '../shared/pendingActivities.ts';
import type { Session } from '../shared/session.ts';
import { createPollerCheck, unpolledQueues } from '../shared/unpolledQueues.ts';

/** @throws CliError */
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
