/** How many runners a set wants now, how many jobs it can serve, and how many of them are beyond that. Pure. */
import {
  desiredSize,
  minAndMax,
  runnersForJobs,
  type Demand,
  type ScaleBounds,
} from '../../core/domain/scale.ts';
import type { SetStateData } from './carriedState.ts';
import type { SetJobs } from './jobs.ts';
import { isExhausted, accumulateRunnerTime, type JobLimits, type WithinLimits } from './limits.ts';
import type { SetRunners } from './runners.ts';

/** What a set's size follows from. */
export interface SetParts {
  readonly facts: SetStateData;
  readonly bounds: ScaleBounds;
  readonly jobs: SetJobs;
  readonly runners: SetRunners;
  readonly limits: JobLimits;
}

/** What follows from it. */
export type SetSize = Pick<
  SetStateData,
  'desired' | 'asked' | 'demandedQueued' | 'full' | 'availableAt' | 'limited' | 'time'
>;

/** Looks at every runner: once after all news of a moment. */
export function sizeNow(parts: SetParts, now: number): SetSize {
  const { facts, bounds, jobs, runners, limits } = parts;
  const busy = runners.all().filter(({ state }) => state === 'busy');
  const checkedAt = facts.checkedAt ?? Number.POSITIVE_INFINITY;
  const { limited, queued, running } = applyLimits(parts);
  const asking: Demand = {
    queued,
    running,
    finished: busy.filter(
      ({ workflowId, ephemeral, jobReported, runnerName = '' }) =>
        ephemeral && jobReported && !jobs.runningOn(runnerName, workflowId),
    ).length,
    busyRunners: busy.length,
    confirmedQueued: Math.min(queued, jobs.confirmedSince(checkedAt)),
    busyBeforeCheck: busy.filter(({ busySince = checkedAt }) => busySince < checkedAt).length,
  };
  const wanted = facts.ending !== undefined ? 0 : desiredSize(bounds, asking);
  const time =
    limits.of.maxRunnerHours === undefined
      ? undefined
      : accumulateRunnerTime(facts.time, runners.all().length, now);
  const spent = isExhausted(limits.of, time);
  // Who is busy ends with its job; who is idle would only use up more.
  const desired = spent ? Math.min(wanted, busy.length) : wanted;
  const asked = runnersForJobs(asking);
  const places = capacityFor(parts, spent);
  return {
    desired,
    asked,
    demandedQueued: queued,
    ...room(facts, asked >= places, now),
    limited: {
      jobs: [...limited.values()].reduce((sum, count) => sum + count, 0),
      runners: wanted - desired,
    },
    ...(time === undefined ? {} : { time }),
  };
}

/** A set that was full has room again when it has had some for a while: what it says of itself must not change with every job. */
function room(
  { full, availableAt, spec }: SetStateData,
  isFull: boolean,
  now: number,
): Pick<SetStateData, 'full' | 'availableAt'> {
  if (isFull || !full) return { full: isFull };
  const at = availableAt ?? now + spec.rerouteMs;
  return at <= now ? { full: false } : { full, availableAt: at };
}

/** The jobs that ask for a place of the set, and of those the ones that its limits let it have runners for. */
export function applyLimits({
  facts,
  jobs,
  runners,
  limits,
}: Pick<SetParts, 'facts' | 'jobs' | 'runners' | 'limits'>): WithinLimits {
  const leaves = (workflowId: string): boolean => runners.get(workflowId)?.state === 'draining';
  if (!limits.any) return { ...jobs.count(leaves), limited: new Map() };
  const counts = jobs.byRepository(leaves);
  // Nobody is left to serve later what a set that ends holds back: one after the other goes to another set.
  return limits.count(
    facts.ending === undefined
      ? counts
      : new Map(
          [...counts].map(([repository, { queued, running }]) => [repository, { queued, running }]),
        ),
  );
}

/** Queued jobs that it cannot serve now. Those that a limit holds back are none of them: another set would serve them against its will. */
export function jobsOverCapacity(parts: SetParts): number {
  const { facts, limits } = parts;
  if (facts.spec.scope === undefined || facts.demandedQueued === 0) return 0;
  return Math.max(
    0,
    Math.min(
      facts.demandedQueued,
      facts.asked - capacityFor(parts, isExhausted(limits.of, facts.time)),
    ),
  );
}

/** Jobs that it can have runners for at a time. One that starts no runner has those that are there; one that ends has none. */
function capacityFor({ facts, bounds, runners }: SetParts, spent: boolean): number {
  const { ending, pausedBy, health } = facts;
  if (ending !== undefined) return 0;
  const startsNone =
    spent || pausedBy !== undefined || health.openedAt !== undefined || health.deprecated === true;
  return startsNone
    ? runners.all().filter(({ state }) => state !== 'draining').length
    : minAndMax(bounds).max;
}
