/** What a set does next, from all that it knows. Pure. */
import { startAllowance, type StartAllowance } from './breaker.ts';
import { planSet, type SetPlan } from './plan.ts';
import type { SetState } from './state.ts';

/** What is to be done now, and when to ask again if nothing happens. */
export interface SetDecision {
  readonly evaluateSchedule: boolean;
  /** Read the runners from visibility. */
  readonly list: boolean;
  /** Look at the jobs of the CI server. */
  readonly checkQueue: boolean;
  readonly start: number;
  readonly drain: SetPlan['drain'];
  /** The set was to end, and has no runner left. */
  readonly ended: boolean;
  /** ms since the epoch. */
  readonly wakeAt: number;
}

export interface PlanNow extends SetPlan {
  readonly allowance: StartAllowance;
  /** No scale-down before (ms since the epoch). */
  readonly scaleDownAt: number;
  /** Places that the recreation guard keeps empty. */
  readonly guarded: number;
}

/** A runner is drained on fresh knowledge only. */
const FRESH_MS = 2_000;

/** The plan, with the reasons for what it does not do. */
export function planNow(state: SetState, now: number): PlanNow {
  const { facts } = state;
  const { spec } = facts;
  const runners = state.runners.all().map((runner) => ({ ...runner, held: state.isHeld(runner) }));
  const starting = runners.filter((runner) => runner.state === 'starting' && runner.generation === spec.generation).length;
  const allowance = startAllowance(facts.health, starting, now);
  const paused = facts.pausedBy !== undefined;
  const scaleDownAt = facts.lastScaleUpAt + spec.scaleDownDelayMs;
  const guarded = state.guardedPlaces();
  const plan = planSet({
    now,
    runners,
    generation: spec.generation,
    desired: facts.desired,
    guardedPlaces: guarded,
    mayStart: paused ? 0 : allowance.mayStart,
    maxSurge: spec.maxSurge,
    scaleDownAt,
    mode: facts.ending !== undefined ? 'end' : paused ? 'leave' : 'run',
  });
  return { ...plan, allowance, scaleDownAt, guarded };
}

/** The next step. The same as long as nothing changes and no time named in it has come. */
export function decideSet(state: SetState, now: number): SetDecision {
  const { facts, runners } = state;
  const { spec, listedAt, schedule, ending } = facts;
  const plan = planNow(state, now);
  const byGuard = plan.withheld > 0 && plan.guarded > 0;
  const relistAt = listedAt === undefined ? now : listedAt + spec.relistMs;
  const checkAt = nextQueueCheckAt(state, byGuard);
  const fresh = listedAt !== undefined && now - listedAt <= FRESH_MS;
  const list = relistAt <= now || (plan.drain.length > 0 && !fresh);
  const wakes = [
    relistAt,
    checkAt,
    schedule.until ?? Number.POSITIVE_INFINITY,
    ...(plan.excess > 0 ? [plan.scaleDownAt] : []),
    ...(plan.withheld > 0 && plan.allowance.until !== undefined ? [plan.allowance.until] : []),
    ...(byGuard ? facts.guards.map(([, endedAt]) => endedAt + spec.recreationGuardMs) : []),
  ];
  return {
    evaluateSchedule: schedule.until !== undefined && schedule.until <= now,
    list,
    checkQueue: checkAt <= now,
    // Nothing is started before it is known what runs already.
    start: listedAt === undefined ? 0 : plan.start,
    drain: list ? [] : plan.drain,
    ended: ending !== undefined && !list && runners.all().length === 0,
    wakeAt: Math.min(...wakes.filter((at) => at > now)),
  };
}

/** Sooner when a place is kept empty for an event that may never come. */
function nextQueueCheckAt({ facts, bounds }: SetState, byGuard: boolean): number {
  const { spec, ending, queueCheckAskedAt, queueCheckFailure } = facts;
  const never = ending !== undefined || spec.queueCheckMs === 0 || spec.scope === undefined || bounds.kind === 'fixed' || queueCheckFailure === QUEUE_CHECK_UNSUPPORTED;
  if (never) return Number.POSITIVE_INFINITY;
  if (queueCheckAskedAt === undefined) return 0;
  return queueCheckAskedAt + (byGuard ? Math.min(spec.guardLookMs, spec.queueCheckMs) : spec.queueCheckMs);
}

/** The CI server has no list of its jobs: it is not asked again. */
export const QUEUE_CHECK_UNSUPPORTED = 'unsupported';
