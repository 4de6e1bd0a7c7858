/** Facts of a set at its start, after a continue-as-new, and after another declaration. */
import type { ActiveSchedule, AdmittedSet } from '../../core/activities/index.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import { limitTime } from '../../core/domain/isTime.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import { HEALTHY } from './breaker.ts';
import { restoreCapacity } from './capacity.ts';
import type { CarriedSetState, SetStateData } from './carriedState.ts';
import { limitCarriedTimes } from './carriedTimes.ts';
import { restoreScaleSet } from './scaleSetDemand.ts';

/** Minimum interval between schedule evaluations (ms). */
const MIN_SCHEDULE_INTERVAL_MS = 1_000;

/** Returns the facts of a new set. */
export function newFacts(
  spec: SetSpec,
  declaration: RunnerSetInput,
  schedule: ActiveSchedule,
  now: number,
): SetStateData {
  return {
    spec,
    declaration,
    at: now,
    schedule,
    health: HEALTHY,
    desired: 0,
    asked: 0,
    demandedQueued: 0,
    full: false,
    limited: { jobs: 0, runners: 0 },
    peaks: [],
  };
}

/**
 * Returns the facts of the previous run, as far as they apply to the set that this run has
 * admitted.
 *
 * @param admitted - definition of the set; `at`: time of the admission (ms since the epoch)
 */
export function restoreFacts(
  carried: CarriedSetState,
  { spec, declaration: { holds: _holds, paused, ...declaration }, schedule, at }: AdmittedSet,
): SetStateData {
  // Limit the carried time: a set that accepted any time would consider every deadline expired.
  // Time may have passed since: a report that was received meanwhile must not look too late.
  const now = Math.max(at, limitTime(carried.facts.at, at + spec.relistMs));
  const { pausedBy = '', ...past } = limitCarriedTimes(carried.facts, spec, now);
  const facts: SetStateData = {
    ...past,
    spec,
    declaration,
    schedule,
    at: now,
    ...(paused === true ? { pausedBy } : {}),
    ...(past.listedAt === undefined ? {} : { listedAt: 0 }),
  };
  const scaleSet = restoreScaleSet(past.scaleSet, now + spec.relistMs);
  if (scaleSet !== undefined && spec.scaleSet !== undefined) facts.scaleSet = scaleSet;
  else delete facts.scaleSet;
  for (const field of ['clusterLimit', 'observedAt', 'placed'] as const) delete facts[field];
  if (spec.capacity === 'observed')
    Object.assign(facts, restoreCapacity(past, { now, latest: now + spec.relistMs }));
  // The listener may have ended meanwhile.
  delete facts.listenerAt;
  reschedule(facts, schedule, at, now);
  return facts;
}

/**
 * Applies another declaration to the facts. A different template resets the health. A pause that
 * the declaration does not mention stays as it is.
 */
export function applyDeclaration(
  facts: SetStateData,
  spec: SetSpec,
  { holds: _holds, paused, ...declaration }: RunnerSetInput,
): void {
  if (spec.templateHash !== facts.spec.templateHash) {
    facts.health = HEALTHY;
    delete facts.runnerVersion;
    delete facts.clusterLimit;
  }
  if (spec.capacity !== 'observed') delete facts.clusterLimit;
  Object.assign(facts, { spec, declaration });
  if (spec.limits.maxRunnerHours === undefined) delete facts.time;
  if (spec.scaleSet === undefined) delete facts.scaleSet;
  delete facts.listenerAt;
  delete facts.queueCheckStartedAt;
  delete facts.rerouteAt;
  if (paused === true) facts.pausedBy ??= '';
  if (paused === false) delete facts.pausedBy;
}

/**
 * Sets the active schedule. Only the distance to the next change is taken from the clock of the
 * worker that evaluated it, because that clock may differ from the set's. The schedule is
 * evaluated again after a while in any case, because that clock may have been wrong.
 *
 * @param askedAt - time that the worker's clock showed (ms since the epoch)
 * @param now - the set's clock (ms since the epoch)
 */
export function reschedule(
  facts: SetStateData,
  schedule: ActiveSchedule,
  askedAt: number,
  now: number,
): void {
  facts.schedule = schedule;
  if (schedule.until === undefined) delete facts.rescheduleAt;
  else
    facts.rescheduleAt =
      now +
      Math.min(Math.max(schedule.until - askedAt, MIN_SCHEDULE_INTERVAL_MS), facts.spec.relistMs);
}
