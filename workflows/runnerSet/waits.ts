/** Lists what a set waits for, by cause. Pure. */
import type { WaitCause, WaitReason } from '../../core/contract/index.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { maxPods, minAndMax } from '../../core/domain/scale.ts';
import { isExhausted, nextDay } from './limits.ts';
import type { CurrentPlan } from './decide.ts';
import { applyLimits, jobsOverCapacity } from './size.ts';
import { declaredBounds, observesCapacity } from './bounds.ts';
import type { SetState } from './state.ts';

/** Time after which a queued job is shown as waiting too long (ms). */
const LONG_QUEUED_MS = 10 * 60_000;
/** Maximum number of repositories that are named because a limit applies to their jobs. */
const MAX_LIMITS = 5;

/** Function that returns the waits of one kind. */
type Waits = (state: SetState, plan: CurrentPlan, now: number) => WaitReason[];

/** In the order in which they are shown. */
const ALL: readonly Waits[] = [
  deletingWait,
  pausedWait,
  breakerWait,
  maxWait,
  capacityWait,
  scaleSetWait,
  listWait,
  rolloutWait,
  drainWait,
  scaleDownWait,
  leavingWait,
  rerouteWait,
  limitWait,
  runnerHoursWait,
  guardWait,
  queuedWait,
  scheduleWait,
];

/**
 * Returns everything that the set waits for.
 * @param now - the set's clock (ms since the epoch)
 */
export function setWaits(state: SetState, plan: CurrentPlan, now: number): WaitReason[] {
  return ALL.flatMap((waits) => waits(state, plan, now));
}

/** Causes that {@link RunnerSetStatus.blockedReason} states. */
const BLOCKING: readonly WaitCause[] = ['paused', 'breaker'];

/** Returns the waits as one text, or `undefined` if there are none. */
export function waitsText(waits: readonly WaitReason[], plan: CurrentPlan): string | undefined {
  const { blocked, allowance } = plan;
  const texts = waits.flatMap(({ cause, text, until }) => {
    if (!BLOCKING.includes(cause)) return [text];
    const isNextTry = cause === 'breaker' && blocked > 0 && allowance.until !== undefined;
    return isNextTry ? [`next try: not until ${until}`] : [];
  });
  return texts.length === 0 ? undefined : texts.join('; ');
}

/** Returns the wait, with the times in ISO 8601. Times are in ms since the epoch. */
function wait(
  cause: WaitCause,
  text: string,
  { since, until }: { since?: number | undefined; until?: number | undefined } = {},
): WaitReason {
  return {
    cause,
    text,
    ...omitUndefined({
      since: since === undefined ? undefined : isoTime(since),
      until: until === undefined ? undefined : isoTime(until),
    }),
  };
}

function deletingWait({ facts: { ending } }: SetState): WaitReason[] {
  return ending === undefined
    ? []
    : [wait('deleting', `its runners to leave, then it ends: ${ending}`)];
}

function pausedWait({ facts: { pausedBy } }: SetState): WaitReason[] {
  if (pausedBy === undefined) return [];
  return [wait('paused', pausedBy === '' ? 'paused' : `paused: ${pausedBy}`)];
}

function breakerWait({ facts }: SetState, { allowance }: CurrentPlan): WaitReason[] {
  const { paused, until } = allowance;
  if (paused === undefined) return [];
  const { openedAt, failedAt, last } = facts.health;
  const text = last === undefined ? paused : `${paused}: ${last.message} (${last.runner})`;
  return [wait('breaker', text, { since: openedAt ?? failedAt, until })];
}

/** Returns that jobs wait because the set has, or may have, no more runners. */
function maxWait({ jobs, facts }: SetState): WaitReason[] {
  const bounds = declaredBounds(facts);
  if (facts.ending !== undefined) return [];
  if (maxPods(bounds) <= 0) {
    const queued = jobs.queued === 0 ? '' : `, ${jobs.queued} jobs are queued`;
    return [wait('max', `max: 0: no runner is started${queued}`)];
  }
  const { max } = minAndMax(bounds);
  return facts.asked > max
    ? [wait('max', `max: ${facts.asked - max} jobs wait until one of ${max} runners is free`)]
    : [];
}

/** Returns that the cluster has no node for as many runners as the jobs require. */
function capacityWait({ facts }: SetState): WaitReason[] {
  const { clusterLimit, ending, asked } = facts;
  if (clusterLimit === undefined || !observesCapacity(facts) || ending !== undefined) return [];
  if (asked < clusterLimit.limit) return [];
  const { limit, reason, since } = clusterLimit;
  const { max } = minAndMax(declaredBounds(facts));
  const text = `capacity ${limit} of ${max}: ${reason} since ${isoTime(since)}`;
  return [wait('capacity', text, { since })];
}

/** Returns why the scale set cannot be read, or that there is no report about it yet. */
function scaleSetWait({ facts: { spec, scaleSet, ending } }: SetState): WaitReason[] {
  if (spec.scaleSet === undefined || ending !== undefined) return [];
  const { problem } = scaleSet ?? {};
  if (problem !== undefined)
    return [
      wait('scale_set', `scale set ${spec.scaleSet.name}: ${problem.text}`, {
        since: problem.since,
      }),
    ];
  return scaleSet === undefined
    ? [wait('scale_set', `first statistics of the scale set ${spec.scaleSet.name}`)]
    : [];
}

/** Returns what waits for a list of the runners. */
function listWait({ facts, listing }: SetState, { drain, start }: CurrentPlan): WaitReason[] {
  if (!listing || facts.ending !== undefined) return [];
  const blocked = [
    ...(facts.listedAt === undefined && start > 0 ? [`${start} runners are not started`] : []),
    ...(drain.length > 0 ? [`${drain.length} runners are not drained`] : []),
  ];
  if (blocked.length === 0) return [];
  const text = `list of its runners from Temporal's visibility: ${blocked.join(' and ')} before it`;
  return [wait('runner_list', text, { since: facts.listStartedAt })];
}

function rolloutWait({ facts, runners }: SetState, { unready }: CurrentPlan): WaitReason[] {
  const { spec, ending } = facts;
  const old = runners.all().filter(({ templateHash }) => templateHash !== spec.templateHash).length;
  if (ending !== undefined || old === 0) return [];
  const young =
    unready > 0
      ? `, ${unready} new ones have not been online for ${formatDuration(spec.minReadyMs)} yet`
      : '';
  return [wait('rollout', `rollout: ${old} runners of an earlier template are left${young}`)];
}

function drainWait({ facts, runners }: SetState): WaitReason[] {
  const { length } = runners
    .all()
    .filter(({ drainRequested }) => drainRequested !== undefined && drainRequested.times > 1);
  if (length === 0) return [];
  const every = formatDuration(facts.spec.relistMs);
  return [
    wait(
      'drain_unconfirmed',
      `${length} runners that were asked to drain and do not: each is asked again every ${every}`,
    ),
  ];
}

function scaleDownWait(_: SetState, { excess, scaleDownAt }: CurrentPlan): WaitReason[] {
  if (excess === 0) return [];
  const text = `scale-down of ${excess} runners: not until ${isoTime(scaleDownAt)}`;
  return [wait('scale_down', text, { until: scaleDownAt })];
}

function leavingWait(_: SetState, { blockedByMax }: CurrentPlan): WaitReason[] {
  return blockedByMax === 0
    ? []
    : [wait('max', `${blockedByMax} runners blocked by max until draining runners are deleted`)];
}

function rerouteWait(state: SetState, _: CurrentPlan, now: number): WaitReason[] {
  const { rerouteAt } = state.facts;
  const jobs = jobsOverCapacity(state);
  if (rerouteAt === undefined || rerouteAt <= now || jobs === 0) return [];
  const text = `another set with room for ${jobs} jobs that it cannot serve now: asked again until ${isoTime(rerouteAt)}`;
  return [wait('reroute', text, { until: rerouteAt })];
}

function limitWait(state: SetState): WaitReason[] {
  const { jobs } = state.facts.limited;
  if (jobs === 0) return [];
  const all = [...applyLimits(state).limited].toSorted(([, a], [, b]) => b - a);
  const largest = all.slice(0, MAX_LIMITS).map(([what, count]) => `${count} of ${what}`);
  const more = all.length > largest.length ? '; …' : '';
  return [wait('limit', `limits: ${jobs} jobs are held back (${largest.join('; ')}${more})`)];
}

function runnerHoursWait({ facts }: SetState, _: CurrentPlan, now: number): WaitReason[] {
  const { limited, spec, time } = facts;
  if (!isExhausted(spec.limits, time)) return [];
  const until = nextDay(now);
  const text = `maxRunnerHours: ${spec.limits.maxRunnerHours ?? 0} hours of today are used up; ${limited.runners} runners are held back until ${isoTime(until)}`;
  return [wait('runner_hours', text, { until })];
}

function guardWait({ facts, guards }: SetState, { blocked, guarded }: CurrentPlan): WaitReason[] {
  if (blocked === 0 || guarded === 0) return [];
  const until = Math.max(0, ...guards.endTimes()) + facts.spec.recreationGuardMs;
  const text = `recreation guard: ${guarded} places stay empty until ${isoTime(until)}, or until the jobs of their runners are accounted for`;
  return [wait('recreation_guard', text, { until })];
}

function queuedWait({ jobs }: SetState, _: CurrentPlan, now: number): WaitReason[] {
  const count = jobs.queuedSince(now - LONG_QUEUED_MS);
  const text = `runners: ${count} jobs have been queued for more than ${formatDuration(LONG_QUEUED_MS)}`;
  return count === 0 ? [] : [wait('queued_long', text)];
}

function scheduleWait({ facts: { schedule, spec } }: SetState): WaitReason[] {
  const { index, until } = schedule;
  if (index === undefined) return [];
  const end = until === undefined ? '' : ` until ${isoTime(until)}`;
  const text = `schedule ${index + 1} (${spec.schedules[index]?.cron ?? ''}) holds${end}`;
  return [wait('schedule', text, { until })];
}
