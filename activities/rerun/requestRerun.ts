import { activityInfo, cancellationSignal, getClient } from '@temporalio/activity';
import { type RequestRerunInput, type RerunPlan } from '../../core/activities/index.ts';
import { requestedRerunsQuery } from '../../core/domain/visibility.ts';
import type { ActivityPorts } from '../ports.ts';
import { callingWorkflowId } from '../shared/callingWorkflow.ts';
import { checkJob, withReruns } from './awaitRerun.ts';
import { requireParentRunner } from './lostRunner.ts';

/**
 * Requests the rerun. The job is read right before. If its workflow run has a later attempt and
 * this is not the first attempt of the activity, an earlier one has requested it.
 */
export async function requestRerun(
  ports: ActivityPorts,
  input: RequestRerunInput,
): Promise<RerunPlan> {
  await requireParentRunner(input.runnerName);
  const isFirst = activityInfo().attempt === 1;
  return await withReruns(ports, input, async (reruns) => {
    const { job, decision } = await checkJob(reruns, input);
    if (decision.kind === 'skip' && decision.reason === 'already_rerun' && !isFirst)
      return { kind: 'rerun', attempt: job?.latestAttempt ?? 1 };
    if (decision.kind === 'skip') return { kind: 'skipped', reason: decision.reason };
    if (isFirst && (await requestedToday(input)) >= input.perDay)
      return { kind: 'skipped', reason: 'per_day' };
    await reruns.rerun(input.scope, input.job, cancellationSignal());
    return { kind: 'rerun', attempt: (job?.latestAttempt ?? 1) + 1 };
  });
}

const DAY_MS = 24 * 3_600_000;

/** Returns how many other workflows have claimed a rerun of the set, or the scope, within a day. */
async function requestedToday({ scope, set }: RequestRerunInput): Promise<number> {
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const query = requestedRerunsQuery({ scope, since, set, except: callingWorkflowId() });
  return (await getClient().workflow.count(query)).count;
}
