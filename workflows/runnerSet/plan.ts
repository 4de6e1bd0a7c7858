/**
 * Decides the next steps of a set: which data to refresh, which runners to start, and which to
 * drain. Pure.
 */
import type { SetRunnerStatus } from '../../core/contract/index.ts';
import { keepsIdleRunners, maxPods, minAndMax } from '../../core/domain/scale.ts';
import { isExhausted, nextDay } from './limits.ts';
import { startAllowance, type StartAllowance } from './breaker.ts';
import { nextObservationAt } from './capacity.ts';
import { recentPeak, scaleDownTime } from './peaks.ts';
import { isWithdrawn, readyTime } from './runnerRecord.ts';
import type { SetState } from './state.ts';

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
    onHold: state.isHeld(runner),
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
  const guarded = state.guardedRunners();
  const modeIfWanted = paused ? 'leave' : 'run';
  const plan = planSet({
    runners,
    templateHash: spec.templateHash,
    desired: facts.desired,
    recentPeak: peakWithinCapacity(state, now),
    maxRunners: maxPods(state.bounds),
    guardedRunners: guarded,
    maxStarts: paused || isExhausted(spec.limits, facts.time) ? 0 : allowance.maxStarts,
    maxSurge: spec.maxSurge,
    mode: facts.ending === undefined ? modeIfWanted : 'end',
  });
  const scaleDownAt = plan.excess === 0 ? now : nextScaleDown(state, plan);
  return { ...plan, allowance, scaleDownAt, guarded, unready };
}

/** Returns the number of runners that scale-downs keep, at most as many as the cluster permits. */
function peakWithinCapacity({ facts, bounds }: SetState, now: number): number {
  const peak = recentPeak(facts.peaks, now, facts.spec.scaleDownDelayMs);
  return facts.clusterLimit === undefined ? peak : Math.min(peak, minAndMax(bounds).max);
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
    ...(byGuard
      ? Array.from(state.guards.values(), (endedAt) => endedAt + spec.recreationGuardMs)
      : []),
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
  return !state.observesCapacity || state.observing || ending !== undefined
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
  { facts, bounds, jobs }: SetState,
  { byGuard }: { readonly byGuard: boolean },
): number {
  const { spec, ending, queueCheckStartedAt, queueCheckFailure } = facts;
  const needless = bounds.kind === 'fixed' && jobs.queued + jobs.reroutedCount === 0;
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
export function needsBusyEvents({ facts, bounds }: SetState, now: number): boolean {
  const { spec, lastJobEventAt } = facts;
  // The scale set reports each start.
  if (spec.scaleSet !== undefined) return false;
  const hasRecentEvent = lastJobEventAt !== undefined && now - lastJobEventAt < WEBHOOK_SILENT_MS;
  return (
    !hasRecentEvent &&
    spec.ephemeral &&
    spec.scope !== undefined &&
    !spec.slots &&
    keepsIdleRunners(bounds)
  );
}

/**
 * Whether runners that are started now may be reported as ended before their pods are deleted. Not
 * if pods count towards the maximum or pass a volume to the next runner: then they must be deleted
 * first.
 */
export function mayNotifyEndEarly({ facts, bounds }: SetState): boolean {
  return maxPods(bounds) === Number.POSITIVE_INFINITY && !facts.spec.slots;
}

/**
 * Whether the ends of runners that are started now may be reported a moment later. Not if a job may
 * wait for one of them to leave, nor if the set keeps a number of runners.
 */
export function mayNotifyEndLate({ facts, bounds }: SetState): boolean {
  return bounds.kind === 'elastic' && !keepsIdleRunners(bounds) && !facts.full && !facts.spec.slots;
}

/**
 * Failure of a queue check on a CI server that has no list of its jobs. The check is not repeated.
 */
export const QUEUE_CHECK_UNSUPPORTED = 'unsupported';

/** Runner of the set, with the fields that the plan needs. */
export interface PlannedRunner {
  readonly workflowId: string;
  readonly templateHash: string;
  readonly state: SetRunnerStatus['state'];
  /** Time of the start (ms since the epoch). */
  readonly startedAt: number;
  readonly onHold: boolean;
  /** Whether the runner has been online for `minReady`, or has taken a job. */
  readonly ready: boolean;
  /** Whether the runner ends by itself after its one job. */
  readonly ephemeral: boolean;
  /**
   * Whether the runner was requested to drain some time ago and does not report that it is
   * draining.
   */
  readonly unresponsive: boolean;
  /** Whether the runner is to be drained because it has no node. It has never been online. */
  readonly withdrawn: boolean;
  /** Whether the runner's pod was seen with a node. */
  readonly hasNode?: true;
}

/** Facts that a plan depends on. */
export interface PlanFacts {
  readonly runners: readonly PlannedRunner[];
  /** Hash of the current template. */
  readonly templateHash: string;
  readonly desired: number;
  /** Maximum number of runners wanted within `scaleDownDelay`. Scale-downs keep that many. */
  readonly recentPeak: number;
  /** Maximum number of runners, including draining ones; the surge of a rollout is added. */
  readonly maxRunners: number;
  /**
   * Number of ephemeral runners that ended with a job that no event has reported. That event will
   * lower the demand, so they are not replaced yet.
   */
  readonly guardedRunners: number;
  /** Maximum number of starts, limited by pauses and the breaker. */
  readonly maxStarts: number;
  readonly maxSurge: number;
  /**
   * `leave`: an operator paused the set; running runners continue. `end`: the set is being deleted;
   * all runners are drained.
   */
  readonly mode: 'run' | 'leave' | 'end';
}

/** Runners to start and to drain, and the numbers that are held back. */
export interface SetPlan {
  readonly start: number;
  readonly drain: readonly { readonly workflowId: string; readonly reason: string }[];
  /**
   * Number of excess runners, idle or starting, that are kept because of {@link
   * PlanFacts.recentPeak}.
   */
  readonly excess: number;
  /** Number of runners that are not started because of the recreation guard or `maxStarts`. */
  readonly blocked: number;
  /**
   * Number of runners that are not started until draining ones have ended, because of `maxRunners`.
   */
  readonly blockedByMax: number;
}

/** Reason given to a runner that was already requested to drain. */
export const DRAIN_REPEATED_REASON = 'requested before by its set, and it did not drain';

/**
 * Plans the starts and drains for this moment.
 *
 * - Starts missing runners immediately, up to `maxRunners`. Draining runners count until they
 *   have ended. While runners of another template are left, at most `maxSurge` more than desired
 *   are running, including draining ones. `maxRunners` is exceeded by at most the number of those
 *   runners.
 * - Scales down runners that are not online yet, newest first, those seen with a node last; then
 *   idle runners, oldest first.
 *   Never a busy runner, and never below `recentPeak`.
 * - Rolls out by draining as many old runners as new ones are ready: first those that are not
 *   online yet, then idle ones, then busy static ones, whose job may finish. A busy ephemeral
 *   runner ends by itself.
 * - Repeats drain requests to runners that do not drain.
 * - Drains runners that are withdrawn, whatever `recentPeak` is. They do not count towards
 *   `maxRunners`, because their pods have no node.
 * - Never touches a runner on hold, except when the whole set ends.
 */
export function planSet(facts: PlanFacts): SetPlan {
  const { runners, templateHash, mode } = facts;
  const isToWithdraw = ({ withdrawn, state, onHold }: PlannedRunner): boolean =>
    withdrawn && state === 'starting' && !onHold && mode === 'run';
  const staying = runners.filter((runner) => runner.state !== 'draining' && !isToWithdraw(runner));
  const unresponsive = runners.filter((runner) => runner.unresponsive);
  if (mode === 'end')
    return {
      start: 0,
      drain: toDrain([...staying, ...unresponsive], 'the set ends'),
      excess: 0,
      blocked: 0,
      blockedByMax: 0,
    };
  const current = staying.filter((runner) => runner.templateHash === templateHash);
  const old = staying.filter((runner) => runner.templateHash !== templateHash);
  const oldLeft = runners.filter((runner) => runner.templateHash !== templateHash).length;

  const missing = missingRunners(
    facts,
    current.length,
    old.filter(({ onHold: held }) => held).length,
    oldLeft,
  );
  const withNode = runners.filter(({ withdrawn }) => !withdrawn).length;
  const room = facts.maxRunners + Math.min(facts.maxSurge, oldLeft) - withNode;
  const startable = Math.max(0, Math.min(missing, room));
  const start = Math.min(Math.max(0, startable - facts.guardedRunners), facts.maxStarts);
  const kept = { start, blocked: startable - start, blockedByMax: missing - startable };
  if (mode === 'leave') return { ...kept, drain: [], excess: 0 };

  const again = unresponsive.filter(({ onHold: held }) => !held);
  const leaving = [
    ...toDrain(again, DRAIN_REPEATED_REASON),
    ...toDrain(runners.filter(isToWithdraw), 'no node has room for its pod'),
    ...rolloutDrains(facts, current, old),
  ];
  const free = current.filter(({ onHold: held }) => !held);
  const surplus = Math.max(0, current.length - facts.desired);
  // Sorting costs more than everything else, and there is usually nothing to choose.
  const inExcess = surplus === 0 ? [] : inTurnToLeave(free).slice(0, surplus);
  const most = Math.max(facts.desired, facts.recentPeak);
  const mayLeave = inExcess.slice(0, Math.max(0, current.length - most));
  const scaleDown = toDrain(mayLeave, 'more runners than wanted');
  const excess = inExcess.length - scaleDown.length;
  return { ...kept, drain: [...leaving, ...scaleDown], excess };
}

const toDrain = (runners: readonly PlannedRunner[], reason: string): SetPlan['drain'] =>
  runners.map(({ workflowId }) => ({ workflowId, reason }));

/** Runners in the order in which a scale-down drains them. */
function inTurnToLeave(free: readonly PlannedRunner[]): PlannedRunner[] {
  const starting = free.filter(({ state }) => state === 'starting');
  return [
    ...byAge(starting.filter(({ hasNode }) => hasNode !== true)).toReversed(),
    ...byAge(starting.filter(({ hasNode }) => hasNode === true)).toReversed(),
    ...byAge(free.filter(({ state }) => state === 'idle')),
  ];
}

function missingRunners(
  { desired, maxSurge }: PlanFacts,
  current: number,
  oldHeld: number,
  oldLeft: number,
): number {
  const missing = desired - current - oldHeld;
  return Math.max(
    0,
    oldLeft === 0 ? missing : Math.min(missing, desired + maxSurge - current - oldLeft),
  );
}

function rolloutDrains(
  { desired, maxStarts }: PlanFacts,
  current: readonly PlannedRunner[],
  old: readonly PlannedRunner[],
): SetPlan['drain'] {
  const ready = current.filter((runner) => runner.ready).length;
  const spare = old.length + ready - desired;
  // If no new runners can be started, keep the old ones, unless no runners are desired.
  if (spare <= 0 || (maxStarts === 0 && ready === 0 && desired > 0)) return [];
  const free = old.filter(({ onHold: held }) => !held);
  const inTurn = [
    ...byAge(free.filter(({ state }) => state === 'starting')),
    ...byAge(free.filter(({ state }) => state === 'idle')),
    ...byAge(free.filter(({ state, ephemeral }) => state === 'busy' && !ephemeral)),
  ];
  return toDrain(inTurn.slice(0, spare), 'the template has changed');
}

/**
 * Sorts runners by age, oldest first. Runners of the same age are sorted by id, so that the plan is
 * deterministic.
 */
function byAge(runners: readonly PlannedRunner[]): PlannedRunner[] {
  return runners.toSorted(
    (a, b) => a.startedAt - b.startedAt || (a.workflowId < b.workflowId ? -1 : 1),
  );
}
