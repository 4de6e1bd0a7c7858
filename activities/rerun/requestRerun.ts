import { activityInfo, cancellationSignal, getClient } from '@temporalio/activity';
import { type RequestRerunInput, type RerunPlan } from '../../core/activities/index.ts';
import { requestedRerunsQuery } from '../../core/domain/visibility.ts';
import type { ActivityPorts } from '../ports.ts';
import { checkJob, withReruns } from './awaitRerun.ts';
import { requireParentRunner } from './lostRunner.ts';

/**
 * Requests the rerun. The job is read right before. If the same job has run again in a later attempt
 * of its workflow run, and this is not the first attempt of the activity, an earlier one has
 * requested it.
 */
export async function requestRerun(
  ports: ActivityPorts,
  input: RequestRerunInput,
): Promise<RerunPlan> {
  const claimedAt = await requireParentRunner(input.runnerName);
  return await withReruns(ports, input, async (reruns) => {
    const { job, decision } = await checkJob(reruns, input);
    if (job?.rerunAttempt !== undefined && activityInfo().attempt > 1)
      return { kind: 'rerun', attempt: job.rerunAttempt };
    if (decision.kind === 'skip') return { kind: 'skipped', reason: decision.reason };
    if ((await claimedBefore(input, claimedAt)) >= input.perDay)
      return { kind: 'skipped', reason: 'per_day' };
    await reruns.rerun(input.scope, input.job, cancellationSignal());
    return { kind: 'rerun', attempt: (job?.latestAttempt ?? 1) + 1 };
  });
}

const DAY_MS = 24 * 3_600_000;

/**
 * Returns how many reruns were requested within a day, or claimed by workflows that started earlier.
 * Claims of later ones do not count, so that many losses at the same time do not block one another.
 */
async function claimedBefore({ scope, set }: RequestRerunInput, claimedAt: Date): Promise<number> {
  const query = requestedRerunsQuery({
    scope,
    set,
    since: new Date(Date.now() - DAY_MS).toISOString(),
    before: claimedAt.toISOString(),
  });
  return (await getClient().workflow.count(query)).count;
}
