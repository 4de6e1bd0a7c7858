/**
 * Capacity that the cluster leaves to a set with `capacity: observed`: how many of its runners can
 * have a node at a time. Pure.
 */
import { isCount } from '../../core/domain/isCount.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isTime } from '../../core/domain/isTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { CapacityObservation } from '../../core/activities/index.ts';
import type { SetRunner } from './runnerRecord.ts';

/** Limit that the cluster imposes, and the attempts to exceed it. */
export interface ClusterLimit {
  /** Number of the set's runners that had a node when another found none. */
  readonly limit: number;
  /** Number of runners beyond the limit that may try to find a node. */
  readonly probe: number;
  /** Reason why a runner found no node, such as `pods unschedulable (Insufficient cpu)`. */
  readonly reason: string;
  /** Time since which the cluster has limited the set (ms since the epoch). */
  readonly since: number;
  /** Time at which a runner was last without a node for long (ms since the epoch). */
  readonly stuckAt: number;
  /** Time of the next probe (ms since the epoch). Present while `probe` is 0. */
  readonly resumeAt?: number;
}

/** Age of a runner at its first observation while there is no limit, and while there is one (ms). */
const FIRST_OBSERVATION_MS = 5_000;
const FIRST_LIMITED_OBSERVATION_MS = 1_000;
/** Interval between observations, and while new runners try to exceed the limit (ms). */
const INTERVAL_MS = 5_000;
const PROBE_INTERVAL_MS = 2_000;
/** Age of a runner from which its observations need not be frequent (ms). */
const YOUNG_MS = 10_000;
/**
 * Time for which a runner must be observed without a node before it counts (ms). A deleted pod frees
 * its node shortly after its replacement was created.
 */
const STUCK_MS = 10_000;
/**
 * Time from the first observation of a runner without a node to its withdrawal (ms). It must span
 * several scans of an autoscaler, which adds nodes for pods that it finds pending: the
 * cluster-autoscaler scans every 10 s. With the time until the first observation and the interval
 * between observations, a pod is pending for up to 45 s.
 */
const WITHDRAW_MS = 35_000;
/** Time without a probe after one found no node (ms). */
const PAUSE_MS = 10_000;
/** Maximum number of runners that try to exceed the limit at a time. */
const MAX_PROBE = 8;
/** Time without a runner that found no node after which the limit no longer applies (ms). */
const FORGET_MS = 10 * 60_000;
/** Maximum number of runners of one observation: about 30 KiB. */
export const MAX_OBSERVED = 500;

/** Limit after an observation, and the runners to withdraw. */
export interface CapacityDecision {
  /** Absent: the cluster does not limit the set. */
  readonly limit?: ClusterLimit;
  /** Workflow IDs of runners that wait for a node for too long. */
  readonly withdraw: readonly string[];
}

/** Facts that the limit depends on. */
export interface LimitFacts {
  readonly before: ClusterLimit | undefined;
  /** Number of the set's pods that have a node, the higher of the last two observations. */
  readonly placed: number;
  /** Starting runners without a node, with the time since which that was seen. */
  readonly waiting: readonly Pick<SetRunner, 'workflowId' | 'startedAt' | 'noNode'>[];
  /** Maximum number of runners according to the declaration. */
  readonly max: number;
}

/**
 * Decides the limit after an observation.
 *
 * - Runners that stay without a node lower the limit to the number of those that have one.
 * - The one that was last seen without a node stays as a probe until {@link WITHDRAW_MS} after
 *   that; the others are withdrawn. The next probe follows after {@link PAUSE_MS}.
 * - When all probes have a node, the limit rises to include them, and twice as many try next.
 */
export function decideCapacity(
  { before, placed, waiting, max }: LimitFacts,
  now: number,
): CapacityDecision {
  const stuck = waiting
    .flatMap(({ noNode, ...runner }) =>
      noNode !== undefined && now - noNode.since >= STUCK_MS ? [{ ...runner, ...noNode }] : [],
    )
    .toSorted(
      (a, b) =>
        b.since - a.since || b.startedAt - a.startedAt || (a.workflowId < b.workflowId ? -1 : 1),
    );
  const [latest] = stuck;
  if (latest !== undefined && placed < max) {
    const isProbe = now - latest.since < WITHDRAW_MS;
    return {
      limit: {
        limit: placed,
        reason: latest.reason,
        since: before?.since ?? now,
        stuckAt: now,
        ...(isProbe ? { probe: 1 } : { probe: 0, resumeAt: now + PAUSE_MS }),
      },
      withdraw: stuck.slice(isProbe ? 1 : 0).map(({ workflowId }) => workflowId),
    };
  }
  const limit = before && raised(before, placed, now);
  const applies = limit !== undefined && limit.limit < max && now - limit.stuckAt < FORGET_MS;
  return { ...(applies ? { limit } : {}), withdraw: [] };
}

function raised({ resumeAt, ...before }: ClusterLimit, placed: number, now: number): ClusterLimit {
  if (before.probe === 0)
    return resumeAt === undefined || resumeAt <= now
      ? { ...before, probe: 1 }
      : { ...before, resumeAt };
  const haveAll = placed >= before.limit + before.probe;
  return {
    ...before,
    limit: Math.max(before.limit, placed),
    probe: haveAll ? Math.min(2 * before.probe, MAX_PROBE) : before.probe,
  };
}

/** Facts that the time of the next observation depends on. */
export interface ObservationFacts {
  readonly limit: ClusterLimit | undefined;
  /** Time of the last observation (ms since the epoch). Absent: there was none. */
  readonly observedAt: number | undefined;
  readonly runners: readonly Pick<SetRunner, 'state' | 'startedAt' | 'hasNode'>[];
}

/**
 * Returns the time of the next observation (ms since the epoch), or Infinity if none is needed
 * before something else happens.
 */
export function nextObservationAt(
  { limit, observedAt = 0, runners }: ObservationFacts,
  now: number,
): number {
  // While there is a limit, a runner that is online already shows that there is room for it.
  const open = runners.filter(
    (runner) => isUnplaced(runner) || (limit !== undefined && isUnseen(runner)),
  );
  const firstMs = limit === undefined ? FIRST_OBSERVATION_MS : FIRST_LIMITED_OBSERVATION_MS;
  const isUrgent = open.some(
    ({ startedAt, state }) => state !== 'starting' || now - startedAt < YOUNG_MS,
  );
  const everyMs = limit !== undefined && isUrgent ? PROBE_INTERVAL_MS : INTERVAL_MS;
  const oldest = Math.min(...open.map(({ startedAt }) => startedAt));
  const atLimit = limit && (limit.resumeAt ?? limit.stuckAt + FORGET_MS);
  return Math.max(
    Math.min(Math.max(observedAt + everyMs, oldest + firstMs), atLimit ?? Number.POSITIVE_INFINITY),
    limit === undefined ? 0 : observedAt + PROBE_INTERVAL_MS,
  );
}

/** Whether the runner is starting and was not seen with a node. */
export function isUnplaced({ state, hasNode }: Pick<SetRunner, 'state' | 'hasNode'>): boolean {
  return state === 'starting' && hasNode !== true;
}

const isUnseen = ({ state, hasNode }: Pick<SetRunner, 'state' | 'hasNode'>): boolean =>
  (state === 'idle' || state === 'busy') && hasNode !== true;

/**
 * Records whether the runners have a node: those that the observation looked for, and those that are
 * online.
 */
export function applyObservation(
  runners: readonly SetRunner[],
  observed: ReadonlySet<string>,
  { unplaced }: Pick<CapacityObservation, 'unplaced'>,
  now: number,
): void {
  const without = new Map(unplaced.map((one) => [one.workflowId, one]));
  for (const runner of runners) {
    if (!observed.has(runner.workflowId) && !isUnseen(runner)) continue;
    const found = without.get(runner.workflowId);
    if (found === undefined) {
      runner.hasNode = true;
      delete runner.withdrawn;
    }
    if (found?.reason === undefined) delete runner.noNode;
    else runner.noNode = { since: runner.noNode?.since ?? now, reason: found.reason };
  }
}

/** Facts about the cluster that a set carries over. */
interface CarriedCapacity {
  readonly clusterLimit?: ClusterLimit;
  readonly observedAt?: number;
  readonly placed?: number;
}

/**
 * Limits the facts that a previous run carried over, which anyone may have written.
 * @param times - `now`: the set's clock; `latest`: latest plausible time (ms since the epoch)
 */
export function restoreCapacity(
  carried: { readonly [fact in keyof CarriedCapacity]?: unknown },
  { now, latest }: { readonly now: number; readonly latest: number },
): CarriedCapacity {
  const { observedAt, placed } = carried;
  return omitUndefined({
    clusterLimit: restoreLimit(carried.clusterLimit, latest),
    // A time in the future would prevent every observation until then.
    observedAt: isTime(observedAt) ? Math.min(observedAt, now) : undefined,
    placed: isCount(placed) ? placed : undefined,
  });
}

function restoreLimit(carried: unknown, latest: number): ClusterLimit | undefined {
  if (!isObject(carried)) return undefined;
  const { limit, probe, reason, since, stuckAt, resumeAt } = carried;
  if (!isCount(limit) || !isCount(probe) || !isTime(since) || !isTime(stuckAt)) return undefined;
  return {
    limit,
    probe: Math.min(probe, MAX_PROBE),
    reason: typeof reason === 'string' ? reason.slice(0, MAX_REASON) : '',
    since: Math.min(since, latest),
    stuckAt: Math.min(stuckAt, latest),
    ...(isTime(resumeAt) ? { resumeAt: Math.min(resumeAt, latest + PAUSE_MS) } : {}),
  };
}

const MAX_REASON = 300;
