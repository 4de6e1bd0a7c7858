import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { FAILURE_TYPES, type LostRunnerInput } from '../../core/activities/index.ts';
import type { RerunJob } from '../../core/contract/index.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withHeartbeats } from '../shared/heartbeats.ts';
import { rejection } from '../shared/rejections.ts';
import { requireParentRunner } from './lostRunner.ts';

/** Maximum age of the list of jobs (ms). Many runners may be lost at once. */
const MAX_LIST_AGE_MS = 5_000;
/** Number of incomplete lists after which the search is given up. */
const MAX_INCOMPLETE = 5;
const INCOMPLETE_RETRY_MS = 30_000;

/**
 * Finds the job that the CI server has in progress on this runner. A runner has one job at a time,
 * and no other runner ever has its name.
 * @throws ApplicationFailure if the list cannot be read, or is incomplete
 */
export async function findLostJob(
  { ciServers }: ActivityPorts,
  { scope, credential, runnerName }: LostRunnerInput,
): Promise<{ readonly job?: RerunJob }> {
  await requireParentRunner(runnerName);
  try {
    const list = await withHeartbeats(
      `looking for the job of ${runnerName}`,
      async () =>
        await ciServers
          .get(credential)
          .listQueuedJobs?.(scope, undefined, cancellationSignal(), MAX_LIST_AGE_MS),
    );
    const found = list?.jobs.find((job) => job.runnerName === runnerName);
    if (found !== undefined) return { job: { id: found.id, repository: found.repository } };
    if (list?.complete !== false) return {};
    throw applicationFailure(
      `the list of jobs is incomplete, and has none of ${runnerName}`,
      FAILURE_TYPES.unavailable,
      {
        nextRetryDelayMs: INCOMPLETE_RETRY_MS,
        final: activityInfo().attempt >= MAX_INCOMPLETE,
      },
    );
  } catch (error) {
    throw rejection(error, { credentialsRetryMs: 60_000 }, { isFinal: false });
  }
}
