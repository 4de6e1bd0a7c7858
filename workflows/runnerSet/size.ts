/**
 * Calculates how many runners a set requires now, how many jobs it can serve, and how many jobs
 * exceed that. Pure.
 */
import { desiredSize, minAndMax, runnersForJobs, type Demand } from '../../core/domain/scale.ts';
import { currentBounds } from './bounds.ts';
import type { SetStateData } from './carriedState.ts';
import { capacityOf } from './scaleSetDemand.ts';
import type { SetJobs } from './jobs.ts';
import { isExhausted, accumulateRunnerTime, type JobLimits, type WithinLimits } from './limits.ts';
import { isWithdrawn } from './runnerRecord.ts';
import type { SetRunners } from './runners.ts';

/** State that the size of a set depends on. */
export interface SetParts {
  readonly facts: SetStateData;
  readonly jobs: SetJobs;
  readonly runners: SetRunners;
  readonly limits: JobLimits;
}

/** Calculated size of a set. */
export type SetSize = Pick<
  SetStateData,
  'desired' | 'asked' | 'demandedQueued' | 'full' | 'availableAt' | 'limited' | 'time'
>;

/**
 * Calculates the size of the set. Called once after all events of a moment, because it evaluates
 * every runner.
 */
export function sizeNow(parts: SetParts, now: number): SetSize {
  const { facts, jobs, runners, limits } = parts;
  const busy = runners.all().filter(({ state }) => state === 'busy');
  const checkedAt = facts.checkedAt ?? Number.POSITIVE_INFINITY;
  const { limited, queued, running } = applyLimits(parts);
  const done = facts.scaleSet && new Set(facts.scaleSet.done);
  const asking: Demand = {
    queued,
    running,
    finished: busy.filter(({ workflowId, ephemeral, jobReported, runnerName = '' }) =>
      done === undefined
        ? ephemeral && jobReported && !jobs.runningOn(runnerName, workflowId)
        : done.has(workflowId),
    ).length,
    busyRunners: busy.length,
    confirmedQueued: Math.min(queued, jobs.confirmedSince(checkedAt)),
    busyBeforeCheck:
      done !== undefined
        ? 0
        : busy.filter(({ busySince = checkedAt }) => busySince < checkedAt).length,
  };
  const wanted = facts.ending !== undefined ? 0 : desiredSize(currentBounds(facts), asking);
  const time =
    limits.of.maxRunnerHours === undefined
      ? undefined
      : accumulateRunnerTime(facts.time, runners.all().length, now);
  const spent = isExhausted(limits.of, time);
  // Busy runners end with their jobs. Idle runners would only use more time.
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

/**
 * Calculates whether the set is full. A set that was full counts as available only after it has had
 * capacity for a while, because its published state must not change with every job.
 */
function room(
  { full, availableAt, spec }: SetStateData,
  isFull: boolean,
  now: number,
): Pick<SetStateData, 'full' | 'availableAt'> {
  if (isFull || !full) return { full: isFull };
  const at = availableAt ?? now + spec.rerouteMs;
  return at <= now ? { full: false } : { full, availableAt: at };
}

/** Returns the number of jobs that require a runner of the set, after its limits are applied. */
export function applyLimits({
  facts,
  jobs,
  runners,
  limits,
}: Pick<SetParts, 'facts' | 'jobs' | 'runners' | 'limits'>): WithinLimits {
  if (facts.spec.scaleSet !== undefined) {
    const { assigned = 0, running = 0, done = [] } = facts.scaleSet ?? {};
    // Draining runners are no runners of the set any more, so their jobs are no demand either.
    const leaving = runners
      .all()
      .filter(
        ({ state, jobReported, workflowId }) =>
          state === 'draining' && jobReported && !done.includes(workflowId),
      ).length;
    return {
      queued: Math.max(0, assigned - running),
      running: Math.max(0, running - leaving),
      limited: new Map(),
    };
  }
  const leaves = (workflowId: string): boolean => runners.get(workflowId)?.state === 'draining';
  if (!limits.any) return { ...jobs.count(leaves), limited: new Map() };
  const counts = jobs.byRepository(leaves);
  // A set that is ending cannot serve limited jobs later, so they are all rerouted, one after the
  // other.
  return limits.count(
    facts.ending === undefined
      ? counts
      : new Map(
          [...counts].map(([repository, { queued, running }]) => [repository, { queued, running }]),
        ),
  );
}

/**
 * Returns the number of queued jobs that the set cannot serve now. Jobs that are held by a limit do
 * not count: another set would serve them although the limit forbids it.
 */
export function jobsOverCapacity(parts: SetParts): number {
  const { facts, limits } = parts;
  // GitHub passes jobs on to other scale sets by itself.
  if (facts.spec.scope === undefined || facts.spec.scaleSet !== undefined) return 0;
  if (facts.demandedQueued === 0) return 0;
  return Math.max(
    0,
    Math.min(
      facts.demandedQueued,
      facts.asked - capacityFor(parts, isExhausted(limits.of, facts.time)),
    ),
  );
}

/** Returns the number of jobs that the set can run at a time, for its scale set. */
export function advertisedCapacity({ facts, runners, limits }: SetParts): number {
  const { ending, pausedBy, health } = facts;
  // The pods of withdrawn runners have no node, so other runners can have one.
  const all = runners.all().filter((runner) => !isWithdrawn(runner));
  return capacityOf({
    bounds: currentBounds(facts),
    startsNone:
      ending !== undefined ||
      pausedBy !== undefined ||
      health.openedAt !== undefined ||
      isExhausted(limits.of, facts.time),
    pods: all.length,
    leaving: all.filter(({ state }) => state === 'draining').length,
  });
}

/**
 * Returns the number of jobs for which the set can have runners at a time. A set that does not
 * start runners has its current runners only; a set that is ending has none.
 */
function capacityFor({ facts, runners }: SetParts, spent: boolean): number {
  const { ending, pausedBy, health } = facts;
  if (ending !== undefined) return 0;
  const startsNone = spent || pausedBy !== undefined || health.openedAt !== undefined;
  return startsNone
    ? runners.all().filter(({ state }) => state !== 'draining').length
    : minAndMax(currentBounds(facts)).max;
}
