import { cancellationSignal, getClient } from '@temporalio/activity';
import { type RequestRerunInput, type RerunPlan } from '../../core/activities/index.ts';
import { requestedRerunsQuery } from '../../core/domain/visibility.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { JobReruns } from '../ports/jobReruns.ts';
import { checkJob, rejectedPlan, withReruns } from './awaitRerun.ts';
import { requireParentRunner } from './lostRunner.ts';
import { beforeRequest, mayBeSent, sendOnce } from './sendOnce.ts';

/**
 * Requests the rerun. The job is read right before. If the same job has run again in a later attempt
 * of its workflow run, and an earlier attempt of the activity may have sent the request, that
 * request was accepted.
 */
export async function requestRerun(
  ports: ActivityPorts,
  input: RequestRerunInput,
): Promise<RerunPlan> {
  const mayHaveSent = mayBeSent();
  const { runnerName, scope, perDay } = input;
  const claimedAt = await beforeRequest(async () => await requireParentRunner(runnerName));
  const request = async (reruns: JobReruns): Promise<RerunPlan> => {
    const { job, decision } = await beforeRequest(async () => await checkJob(reruns, input));
    if (job?.rerunAttempt !== undefined && mayHaveSent)
      return { kind: 'rerun', attempt: job.rerunAttempt };
    if (decision.kind === 'skip') return { kind: 'skipped', reason: decision.reason };
    const claims = await beforeRequest(async () => await claimedBefore(input, claimedAt));
    if (claims >= perDay) return { kind: 'skipped', reason: 'per_day' };
    await sendOnce(async () => await reruns.rerun(scope, input.job, cancellationSignal()));
    return { kind: 'rerun', attempt: (job?.latestAttempt ?? 1) + 1 };
  };
  return await withReruns(ports, input, request, rejectedPlan);
}

const DAY_MS = 24 * 3_600_000;

/**
 * Returns how many reruns were requested within a day, or claimed by workflows that started earlier.
 * Claims of later ones do not count, so that many losses at the same time do not block one another.
 */
export async function claimedBefore(
  { scope, set }: Pick<RequestRerunInput, 'scope' | 'set'>,
  claimedAt: Date,
): Promise<number> {
  const query = requestedRerunsQuery({
    scope,
    set,
    since: new Date(Date.now() - DAY_MS).toISOString(),
    before: claimedAt.toISOString(),
  });
  return (await getClient().workflow.count(query)).count;
}
