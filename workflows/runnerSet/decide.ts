/** Decides the next steps of a set: which data to refresh, which runners to start, and which to drain. Pure. */
import { keepsIdleRunners, maxPods, minAndMax } from '../../core/domain/scale.ts';
import { isExhausted, nextDay } from './limits.ts';
import { currentBounds, observesCapacity } from './bounds.ts';
import { startAllowance, type StartAllowance } from './breaker.ts';
import { nextObservationAt } from './capacity.ts';
import { recentPeak, scaleDownTime } from './peaks.ts';
import { isWithdrawn, readyTime } from './runnerRecord.ts';
import type { SetState } from './state.ts';
import { type SetPlan, planSet } from './plan.ts';

/** Actions to take now, and the time of the next decision if nothing happens. */
export interface SetDecision {
  readonly evaluateSchedule: boolean;
  /** Whether to list the runners from visibility. */
  readonly listRunners: boolean;
  /** Whether to start the listener of the scale set, or to check that it runs. */
  readonly startListener: boolean;
  /** Whether to observe which runners have a node. */
  readonly observe: boolean;
  /** Whether to check the jobs of the CI server. */
  readonly checkQueue: boolean;
  /** Whether to reroute jobs to other sets. */
  readonly rerouteJobs: boolean;
  readonly start: number;
  readonly drain: SetPlan['drain'];
  /** Whether the set was to end and has no runner left. */
  readonly ended: boolean;
  /** Time of the next decision (ms since the epoch). */
  readonly wakeAt: number;
}

/** Plan for this moment, with the reasons for what it does not do yet. */
export interface CurrentPlan extends SetPlan {
  readonly allowance: StartAllowance;
  /** Time of the next scale-down, if there are excess runners (ms since the epoch). */
  readonly scaleDownAt: number;
  /** Number of runners that are not replaced yet because of the recreation guard. */
  readonly guarded: number;
  /** Number of runners of the current template that are not ready yet. */
  readonly unready: number;
}

/** Maximum age of the runner list for draining a runner (ms). */
const LIST_MAX_AGE_MS = 2_000;

/** Time without a job event after which the set assumes that it has no webhook (ms). */
const WEBHOOK_SILENT_MS = 24 * 3_600_000;

/** Returns the plan, with the reasons for what it does not do yet. */
export function currentPlan(state: SetState, now: number): CurrentPlan {
  const { facts } = state;
  const { spec } = facts;
  const runners = state.runners.all().map((runner) => ({
    ...runner,
    onHold: state.holds.isHeld(runner),
    withdrawn: isWithdrawn(runner),
    ready: readyTime(runner, spec.minReadyMs) <= now,
    unresponsive:
      runner.drainRequested !== undefined && runner.drainRequested.at + spec.relistMs <= now,
  }));
  const unready = runners.filter(
    ({ state, ready, templateHash }) =>
      state !== 'draining' && !ready && templateHash === spec.templateHash,
  ).length;
  const allowance = startAllowance(facts.health, unready, now);
  const paused = facts.pausedBy !== undefined;
  const guarded = state.guards.count(state.jobs, facts.scaleSet);
  const modeIfWanted = paused ? 'leave' : 'run';
  const plan = planSet({
    runners,
    templateHash: spec.templateHash,
    desired: facts.desired,
    recentPeak: peakWithinCapacity(state, now),
    maxRunners: maxPods(currentBounds(facts)),
    guardedRunners: guarded,
    maxStarts: paused || isExhausted(spec.limits, facts.time) ? 0 : allowance.maxStarts,
    maxSurge: spec.maxSurge,
    mode: facts.ending === undefined ? modeIfWanted : 'end',
  });
  const scaleDownAt = plan.excess === 0 ? now : nextScaleDown(state, plan);
  return { ...plan, allowance, scaleDownAt, guarded, unready };
}

/** Returns the number of runners that scale-downs keep, at most as many as the cluster permits. */
function peakWithinCapacity({ facts }: SetState, now: number): number {
  const peak = recentPeak(facts.peaks, now, facts.spec.scaleDownDelayMs);
  return facts.clusterLimit === undefined
    ? peak
    : Math.min(peak, minAndMax(currentBounds(facts)).max);
}

/**
 * Returns the times at which runners become ready (ms since the epoch), if a rollout or starts wait
 * for that.
 */
function awaitedReadyTimes({ facts, runners }: SetState): number[] {
  const { spec, health } = facts;
  const all = runners.all();
  const awaited =
    health.failedAt !== undefined || all.some((one) => one.templateHash !== spec.templateHash);
  return awaited ? all.map((runner) => readyTime(runner, spec.minReadyMs)) : [];
}

/** Returns the times at which drain requests are repeated (ms since the epoch). */
function drainAgainTimes({ facts, runners }: SetState): number[] {
  return runners
    .all()
    .flatMap(({ drainRequested }) =>
      drainRequested === undefined ? [] : [drainRequested.at + facts.spec.relistMs],
    );
}

/** Returns the time at which the next of the excess runners may be drained (ms since the epoch). */
function nextScaleDown({ facts, runners }: SetState, { drain }: SetPlan): number {
  const { peaks, spec } = facts;
  const leaving = new Set(drain.map(({ workflowId }) => workflowId));
  const kept = runners
    .all()
    .filter(
      ({ workflowId, state, templateHash }) =>
        state !== 'draining' && templateHash === spec.templateHash && !leaving.has(workflowId),
    );
  return scaleDownTime(peaks, kept.length, spec.scaleDownDelayMs);
}

/**
 * Decides the next step. The result is the same as long as nothing changes and none of its times
 * has been reached.
 */
export function decideSet(state: SetState, now: number): SetDecision {
  const { facts, runners } = state;
  const { spec, listedAt, rescheduleAt = Number.POSITIVE_INFINITY, ending } = facts;
  const plan = currentPlan(state, now);
  const byGuard = plan.blocked > 0 && plan.guarded > 0;
  const relistAt = nextListAt(state, now);
  const checkAt = nextQueueCheckAt(state, { byGuard });
  const passAt = state.passing.dueAt(state);
  const listenerAt = nextListenerAt(state);
  const observeAt = nextObservation(state, now);
  const fresh = listedAt !== undefined && now - listedAt <= LIST_MAX_AGE_MS;
  // Runners of a set that ends are drained whatever they do, so no fresh list is needed for that.
  const needsFresh = plan.drain.length > 0 && ending === undefined;
  const listRunners = !state.listing && (relistAt <= now || (needsFresh && !fresh));
  const wakes = [
    relistAt,
    checkAt,
    rescheduleAt,
    passAt,
    listenerAt,
    observeAt,
    facts.availableAt ?? Number.POSITIVE_INFINITY,
    ...(isExhausted(spec.limits, facts.time) ? [nextDay(now)] : []),
    ...drainAgainTimes(state),
    ...awaitedReadyTimes(state),
    ...(plan.excess > 0 ? [plan.scaleDownAt] : []),
    ...(plan.blocked > 0 && plan.allowance.until !== undefined ? [plan.allowance.until] : []),
    ...(byGuard ? state.guards.endTimes().map((endedAt) => endedAt + spec.recreationGuardMs) : []),
  ];
  return {
    evaluateSchedule: rescheduleAt <= now,
    startListener: listenerAt <= now,
    listRunners,
    observe: observeAt <= now,
    checkQueue: checkAt <= now,
    rerouteJobs: passAt <= now,
    // Nothing is started before the running runners are known.
    start: listedAt === undefined ? 0 : plan.start,
    drain: needsFresh && !fresh ? [] : plan.drain,
    ended:
      ending !== undefined &&
      !listRunners &&
      !state.listing &&
      passAt > now &&
      runners.all().length === 0,
    wakeAt: Math.min(...wakes.filter((at) => at > now)),
  };
}

/**
 * Returns the time of the next list of the runners (ms since the epoch). The interval begins when
 * a list is requested, so that the timer for the next one need not be set again when it is there.
 */
function nextListAt({ facts, listing }: SetState, now: number): number {
  const { listedAt, listStartedAt = listedAt, spec } = facts;
  if (!listing && (listedAt === undefined || listedAt === 0)) return now;
  return (listStartedAt ?? now) + spec.relistMs;
}

/**
 * Returns the time at which to check that the listener of the scale set runs (ms since the epoch).
 */
function nextListenerAt({ facts }: SetState): number {
  const { spec, listenerAt, ending } = facts;
  if (spec.scaleSet === undefined || ending !== undefined) return Number.POSITIVE_INFINITY;
  return listenerAt === undefined ? 0 : listenerAt + spec.relistMs;
}

/** Returns the time of the next observation of the cluster (ms since the epoch). */
function nextObservation(state: SetState, now: number): number {
  const { clusterLimit: limit, observedAt, ending } = state.facts;
  return !observesCapacity(state.facts) || state.observer.isPending || ending !== undefined
    ? Number.POSITIVE_INFINITY
    : nextObservationAt({ limit, observedAt, runners: state.runners.all() }, now);
}

/**
 * Returns the time of the next queue check (ms since the epoch). Checks are more frequent while the
 * recreation guard blocks a runner because of an event that may never arrive. A set of fixed size
 * needs no checks to determine its size, only to find out whether a job that it considers queued
 * still is.
 */
function nextQueueCheckAt(
  { facts, jobs }: SetState,
  { byGuard }: { readonly byGuard: boolean },
): number {
  const { spec, ending, queueCheckStartedAt, queueCheckFailure } = facts;
  const needless = currentBounds(facts).kind === 'fixed' && jobs.queued + jobs.reroutedCount === 0;
  const never =
    ending !== undefined ||
    spec.queueCheckMs === 0 ||
    spec.scaleSet !== undefined ||
    spec.scope === undefined ||
    needless ||
    queueCheckFailure === QUEUE_CHECK_UNSUPPORTED;
  if (never) return Number.POSITIVE_INFINITY;
  if (queueCheckStartedAt === undefined) return 0;
  return (
    queueCheckStartedAt +
    (byGuard ? Math.min(spec.guardCheckMs, spec.queueCheckMs) : spec.queueCheckMs)
  );
}

/**
 * Whether runners that are started now must report when their jobs start. Not needed if job events
 * arrive. A runner that is not ephemeral would have to report the end of the job as well.
 */
export function needsBusyEvents({ facts }: SetState, now: number): boolean {
  const { spec, lastJobEventAt } = facts;
  // The scale set reports each start.
  if (spec.scaleSet !== undefined) return false;
  const hasRecentEvent = lastJobEventAt !== undefined && now - lastJobEventAt < WEBHOOK_SILENT_MS;
  return (
    !hasRecentEvent &&
    spec.ephemeral &&
    spec.scope !== undefined &&
    !spec.slots &&
    keepsIdleRunners(currentBounds(facts))
  );
}

/**
 * Whether runners that are started now may be reported as ended before their pods are deleted. Not
 * if pods count towards the maximum or pass a volume to the next runner: then they must be deleted
 * first.
 */
export function mayNotifyEndEarly({ facts }: SetState): boolean {
  return maxPods(currentBounds(facts)) === Number.POSITIVE_INFINITY && !facts.spec.slots;
}

/**
 * Whether the ends of runners that are started now may be reported a moment later. Not if a job may
 * wait for one of them to leave, nor if the set keeps a number of runners.
 */
export function mayNotifyEndLate({ facts }: SetState): boolean {
  const bounds = currentBounds(facts);
  return bounds.kind === 'elastic' && !keepsIdleRunners(bounds) && !facts.full && !facts.spec.slots;
}

/**
 * Failure of a queue check on a CI server that has no list of its jobs. The check is not repeated.
 */
export const QUEUE_CHECK_UNSUPPORTED = 'unsupported';
