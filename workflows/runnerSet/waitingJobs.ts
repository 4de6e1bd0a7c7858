/**
 * Queries over all active jobs of a set: which are queued here, and for which repository. Each
 * query iterates over all jobs. Pure.
 */
import type { RerouteJobsInput } from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { JobRecord } from './jobRecord.ts';
import type { JobCount } from './limits.ts';

type Live = ReadonlyMap<string, JobRecord>;

/** Whether the job requires a runner of this set. */
export const isQueuedHere = ({ state, reroutedTo }: JobRecord): boolean =>
  state === 'queued' && reroutedTo === undefined;

/**
 * Whether this is one of the set's own jobs and another set has it now. Jobs that other sets
 * rerouted here count towards the limits of those sets. The end of a job that was returned is not
 * reported to this set.
 */
const isAway = ({ state, reroutedTo, reroutedHere }: JobRecord): boolean =>
  reroutedTo !== undefined && reroutedHere === undefined && state !== 'left';

/** Whether the job is queued in another set, to which this set has rerouted it. */
export const isRerouted = (job: JobRecord): boolean => job.state === 'queued' && isAway(job);

/**
 * Returns jobs that are queued here, most recently queued first.
 * @param count - maximum number of jobs
 * @param asking - maximum number of jobs for each repository, of which the first are taken.
 * @default all
 */
export function lastQueued(
  live: Live,
  count: number,
  asking?: ReadonlyMap<string, number>,
): RerouteJobsInput['jobs'] {
  const waiting = [...live].flatMap(([key, job]) => {
    const { runId, repository, since } = job;
    return isQueuedHere(job) ? [{ key, repository, since, ...omitUndefined({ runId }) }] : [];
  });
  const oldestFirst = waiting.toSorted((a, b) => a.since - b.since || (a.key < b.key ? 1 : -1));
  const remaining = new Map(asking);
  const may =
    asking === undefined
      ? oldestFirst
      : oldestFirst.filter(({ repository }) => {
          const more = remaining.get(repository) ?? 0;
          remaining.set(repository, more - 1);
          return more > 0;
        });
  return may.toReversed().slice(0, count);
}

/**
 * Returns jobs that are queued here and were last updated before the given time, those with the
 * oldest update first.
 *
 * @param before - time (ms since the epoch)
 * @param count - maximum number of jobs
 */
export function staleJobs(
  live: Live,
  before: number,
  count: number,
): { key: string; repository: string }[] {
  const waiting = [...live].flatMap(([key, job]) =>
    isQueuedHere(job) && job.updatedAt < before
      ? [{ key, repository: job.repository, updatedAt: job.updatedAt }]
      : [],
  );
  return waiting
    .toSorted((a, b) => a.updatedAt - b.updatedAt)
    .slice(0, count)
    .map(({ key, repository }) => ({ key, repository }));
}

/**
 * Counts the jobs of each repository.
 *
 * @param assigned - running jobs that require a runner of this set
 */
export function countByRepository(
  live: Live,
  assigned: Iterable<JobRecord>,
): Map<string, JobCount> {
  const counts = new Map<string, { queued: number; running: number; rerouted: number }>();
  const of = ({ repository }: JobRecord): { queued: number; running: number; rerouted: number } => {
    const count = counts.get(repository) ?? { queued: 0, running: 0, rerouted: 0 };
    counts.set(repository, count);
    return count;
  };
  for (const job of live.values()) {
    if (isQueuedHere(job)) of(job).queued++;
    else if (isAway(job)) of(job).rerouted++;
  }
  for (const job of assigned) {
    of(job).running++;
    // The CI server has assigned the job to a runner of this set all the same.
    if (isAway(job)) of(job).rerouted--;
  }
  return counts;
}
