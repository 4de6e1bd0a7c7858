/** What is asked of all live jobs together: which of them wait here, and for whom. Each walks over all of them. Pure. */
import type { JobRecord } from './jobRecord.ts';
import type { JobCount } from './limits.ts';

type Live = ReadonlyMap<string, JobRecord>;

/** Does it ask this set for a runner? */
export const isQueuedHere = ({ state, reroutedTo }: JobRecord): boolean =>
  state === 'queued' && reroutedTo === undefined;

/** A job of its own that another set has now. What others have passed here is of their limits; and nobody tells the end of one that has gone back. */
const isAway = ({ state, reroutedTo, reroutedHere }: JobRecord): boolean =>
  reroutedTo !== undefined && reroutedHere === undefined && state !== 'left';

/** Does it wait in another set, to which this one has passed it? */
export const isRerouted = (job: JobRecord): boolean => job.state === 'queued' && isAway(job);

/**
 * Those that wait here, the last to come first: at the most so many.
 * @param asking - only so many of each repository, the first to come. @default all
 */
export function lastQueued(
  live: Live,
  count: number,
  asking?: ReadonlyMap<string, number>,
): { key: string; repository: string; since: number }[] {
  const waiting = [...live].flatMap(([key, job]) =>
    isQueuedHere(job) ? [{ key, repository: job.repository, since: job.since }] : [],
  );
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

/** Of those that have waited here since before this time, the ones of which nothing was heard for longest: at the most so many. */
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

/** @param assigned - those of the live ones that ask for a place here because they run */
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
    // The CI server has given it a runner of this set all the same.
    if (isAway(job)) of(job).rerouted--;
  }
  return counts;
}
