/** Answers the query `jobs` of a set. Pure. */
import { MAX_SET_JOBS, type SetJobStatus } from '../../core/contract/index.ts';
import { parseJobKey } from '../../core/domain/ciJobState.ts';
import { parseCiId } from '../../core/domain/ciId.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { JobRecord } from './jobRecord.ts';
import { applyLimits } from './size.ts';
import type { SetState } from './state.ts';
import { isQueuedHere } from './waitingJobs.ts';

/**
 * Returns the jobs that the set knows, the longest waiting first.
 * @param request - {@link SetJobsRequest} of any sender. Without a field it selects nothing
 */
export function setJobs(state: SetState, request: unknown): SetJobStatus[] {
  const { jobId: id, repository: name, runId } = isObject(request) ? request : {};
  const jobId = parseCiId(id);
  const repository = typeof name === 'string' ? name.toLowerCase() : undefined;
  const isSelected = (job: JobRecord): boolean =>
    job.repository.toLowerCase() === repository &&
    job.state !== 'left' &&
    (runId === undefined || job.runId === runId);
  const active = [...state.jobs.active].filter(([key, job]) =>
    id === undefined ? isSelected(job) : parseJobKey(key).jobId === jobId,
  );
  const isLimited = limitedRepositories(state);
  const completed = [...state.jobs.completed].filter(([key]) => parseJobKey(key).jobId === jobId);
  return [
    ...active
      .toSorted(([, a], [, b]) => a.since - b.since)
      .map(([key, job]) => activeJob(key, job, isQueuedHere(job) && isLimited(job.repository))),
    ...completed.map(([key, at]) => ({
      ...parseJobKey(key),
      state: 'completed' as const,
      since: isoTime(at),
    })),
  ].slice(0, MAX_SET_JOBS);
}

function activeJob(key: string, job: JobRecord, limited: boolean): SetJobStatus {
  const { state, since, repository, runnerName, reroutedTo, reroutedHere } = job;
  return {
    ...parseJobKey(key),
    repository,
    state,
    since: isoTime(since),
    ...omitUndefined({
      runnerName,
      reroutedTo,
      reroutedHere,
      limited: limited ? (true as const) : undefined,
    }),
  };
}

/** Returns whether limits hold back queued jobs of a repository. */
function limitedRepositories(state: SetState): (repository: string) => boolean {
  const { allowed } = applyLimits(state);
  if (allowed === undefined) return () => false;
  const counts = state.jobs.byRepository(
    (workflowId) => state.runners.get(workflowId)?.state === 'draining',
  );
  return (repository) => (counts.get(repository)?.queued ?? 0) > (allowed.get(repository) ?? 0);
}
