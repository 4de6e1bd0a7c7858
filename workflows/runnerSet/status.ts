/** Display of a set: the query `status`, and the details in Temporal's UI. */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { isoTime } from '../../core/domain/isoTime.ts';
import { escapeMarkdown } from '../../core/domain/displayText.ts';
import { queueCheckText } from '../../core/domain/queueCheckText.ts';
import type {
  ClusterLimitStatus,
  QueueCheckStatus,
  RunnerSetStatus,
  ScaleSetStatus,
  SetCommandResult,
  SetAwaitingAdmission,
  SetRunnerStatus,
  SetStatusRequest,
} from '../../core/contract/index.ts';
import { declaredBounds } from './bounds.ts';
import type { ClusterLimit } from './capacity.ts';
import { runnerHours } from './limits.ts';
import { currentPlan, QUEUE_CHECK_UNSUPPORTED, type CurrentPlan } from './decide.ts';
import { minAndMax } from '../../core/domain/scale.ts';
import { advertisedCapacity } from './size.ts';
import type { SetState } from './state.ts';
import { setWaits, waitsText } from './waits.ts';

/** Maximum number of runner rows in the details. The UI is for an overview. */
const MAX_ROWS = 50;
/** Number of runners above which the details are not updated with every signal. */
const MANY_RUNNERS = 200;
/** Interval between updates of the details of such a set (ms). */
const DETAILS_INTERVAL_MS = 5_000;

/**
 * Maximum number of runners in one answer. Each has up to 450 bytes, and Temporal rejects answers
 * of 2 MiB.
 */
const MAX_STATUS_RUNNERS = 2_000;

/**
 * Returns the status of a set for the query `status`.
 * @param now - the set's clock (ms since the epoch)
 * @param request - {@link SetStatusRequest} of any sender
 */
export function setStatus(state: SetState, now: number, request?: unknown): RunnerSetStatus {
  const { after, max } = parseStatusRequest(request);
  // By id and not by position: a runner that ends between two queries moves those after it.
  const runners = state.runners
    .all()
    .filter(({ workflowId }) => workflowId > after)
    .toSorted((a, b) => (a.workflowId < b.workflowId ? -1 : 1));
  const page = runners.slice(0, max);
  const last = page.at(-1);
  return {
    ...setSummary(state, now),
    runnerCounts: countByState(state),
    runners: page.map((runner) => runnerStatus(runner, state.holds.isHeld(runner))),
    ...(last !== undefined && page.length < runners.length ? { moreAfter: last.workflowId } : {}),
  };
}

function parseStatusRequest(request: unknown): Required<SetStatusRequest> {
  const { after, max } = isObject(request) ? request : {};
  const count = typeof max === 'number' && max >= 0 ? Math.floor(max) : MAX_STATUS_RUNNERS;
  return {
    after: typeof after === 'string' ? after : '',
    max: Math.min(count, MAX_STATUS_RUNNERS),
  };
}

/** Returns the status of a set that has not been admitted in the current run. */
export function statusBeforeAdmission(name: string): SetAwaitingAdmission {
  return {
    name,
    awaitingAdmission: 'its declaration waits for admission by a worker of its task queue',
  };
}

/**
 * Returns the status without the runners. Listing thousands of runners costs more than everything
 * else.
 */
function setSummary(
  state: SetState,
  now: number,
): Omit<RunnerSetStatus, 'runners' | 'runnerCounts' | 'moreAfter'> {
  const { facts, jobs } = state;
  const { spec } = facts;
  const bounds = declaredBounds(facts);
  const plan = currentPlan(state, now);
  const blockedReason = notStartingReason(state, plan);
  const waits = setWaits(state, plan, now);
  return {
    name: spec.name,
    templateHash: spec.templateHash,
    desired: facts.desired,
    ...minAndMax(bounds),
    ...omitUndefined({
      replicas: bounds.kind === 'fixed' ? bounds.replicas : undefined,
      replaceAhead: bounds.replaceAhead || undefined,
    }),
    jobs: {
      ...state.demand(),
      startedTotal: jobs.startedTotal,
      completedTotal: jobs.completedTotal,
    },
    ...omitUndefined({
      rerouted: jobs.reroutedCount || undefined,
      limited: facts.limited.jobs + facts.limited.runners > 0 ? { ...facts.limited } : undefined,
      runnerHours: facts.time && runnerHours(facts.time),
    }),
    ...omitUndefined({
      blockedReason,
      waitingFor: waitsText(waits, plan),
      waits: waits.length === 0 ? undefined : waits,
      lastFailure: facts.health.last && {
        ...facts.health.last,
        at: isoTime(facts.health.last.at),
      },
      deleting: facts.ending,
      listPendingSince: state.listing ? isoTime(facts.listStartedAt ?? now) : undefined,
      ciServer: spec.ciServer,
      scopeKind: spec.scope?.kind,
      groupJobs: spec.groupJobs,
      queueCheck: queueCheckStatus(facts),
      scaleSet: scaleSetStatus(state),
      clusterLimit: facts.clusterLimit && clusterLimitStatus(facts.clusterLimit),
      runnerVersion: facts.runnerVersion,
    }),
    labels: [...spec.labels],
    scope: spec.scope?.name ?? '',
    holds: state.holds.all(),
  };
}

function scaleSetStatus(state: SetState): ScaleSetStatus | undefined {
  const { spec, scaleSet } = state.facts;
  if (spec.scaleSet === undefined) return undefined;
  return {
    name: spec.scaleSet.name,
    capacity: advertisedCapacity(state),
    assigned: scaleSet?.assigned ?? 0,
    ...omitUndefined({
      at: scaleSet === undefined || scaleSet.at === 0 ? undefined : isoTime(scaleSet.at),
      problem: scaleSet?.problem?.text,
      problemSince: scaleSet?.problem && isoTime(scaleSet.problem.since),
    }),
  };
}

function clusterLimitStatus({ limit, probe, reason, since }: ClusterLimit): ClusterLimitStatus {
  return { limit, probing: probe, reason, since: isoTime(since) };
}

function queueCheckStatus({
  incomplete,
  queueCheckFailure: message,
}: SetState['facts']): QueueCheckStatus | undefined {
  if (incomplete === undefined) return undefined;
  const incompleteSince = isoTime(incomplete.since);
  if (incomplete.unsupported === true || message === QUEUE_CHECK_UNSUPPORTED)
    return { reason: 'unsupported', incompleteSince };
  if (message !== undefined) return { reason: 'failed', incompleteSince, message };
  return incomplete.budgetUntil === undefined
    ? { reason: 'partial', incompleteSince }
    : { reason: 'budget', incompleteSince, budgetUntil: isoTime(incomplete.budgetUntil) };
}

/** Returns the response to a command. */
export function commandResult(state: SetState, now: number): SetCommandResult {
  return { ...setSummary(state, now), runners: countByState(state) };
}

function countByState({ runners }: SetState): SetCommandResult['runners'] {
  const counts = { starting: 0, idle: 0, busy: 0, draining: 0 };
  for (const { state } of runners.all()) counts[state]++;
  return counts;
}

function runnerStatus(
  runner: ReturnType<SetState['runners']['all']>[number],
  onHold: boolean,
): SetRunnerStatus {
  const { workflowId, runnerName, templateHash, state, startedAt, slot, drainRequested } = runner;
  return {
    workflowId,
    templateHash,
    state,
    onHold,
    startedAt: isoTime(startedAt),
    ...omitUndefined({
      runnerName,
      slot,
      drainRequested: drainRequested && {
        at: isoTime(drainRequested.at),
        times: drainRequested.times,
      },
    }),
  };
}

function notStartingReason({ facts }: SetState, { allowance }: CurrentPlan): string | undefined {
  if (facts.pausedBy === undefined) return allowance.paused;
  return facts.pausedBy === '' ? 'paused' : `paused: ${facts.pausedBy}`;
}

/**
 * Returns whether the details in Temporal's UI are to be updated. With many runners that takes
 * longer than all else that follows from one signal.
 * @param shownAt - time of the last update (ms since the epoch)
 */
export function areDetailsDue({ runners }: SetState, shownAt: number, now: number): boolean {
  return runners.size <= MANY_RUNNERS || now >= shownAt + DETAILS_INTERVAL_MS;
}

/** Returns the details for Temporal's UI as Markdown. */
export function setDetails(state: SetState, now: number): string {
  const s = setSummary(state, now);
  const { facts } = state;
  const all = state.runners.all();
  const counts = countByState(state);
  const row = (name: string, value: string | number | undefined): string[] =>
    value === undefined || value === '' ? [] : [`| ${name} | ${escapeMarkdown(String(value))} |`];
  const runners = all
    .slice(0, MAX_ROWS)
    .map((runner) => runnerStatus(runner, state.holds.isHeld(runner)))
    .map(
      (runner) =>
        `| ${escapeMarkdown(runner.workflowId)} | ${runner.state}${runner.drainRequested === undefined ? '' : `, asked ×${runner.drainRequested.times}`}${runner.onHold ? ', held' : ''} | ${runner.templateHash} | ${runner.startedAt} |`,
    );
  return [
    `| Set | ${escapeMarkdown(s.name)} |`,
    '|---|---|',
    ...row('As of', all.length > MANY_RUNNERS ? isoTime(now) : undefined),
    ...row('Runners', `${all.length} of ${s.desired} wanted (${s.min} to ${s.max})`),
    ...row(
      '',
      `${counts.starting} starting, ${counts.idle} idle, ${counts.busy} busy, ${counts.draining} leaving`,
    ),
    ...row(
      'Jobs',
      `${s.jobs.queued} queued, ${s.jobs.running} assigned; ${s.jobs.completedTotal} completed in all`,
    ),
    ...row('', s.rerouted === undefined ? undefined : `${s.rerouted} more wait in other sets`),
    ...row(
      'Runner-hours today',
      s.runnerHours === undefined
        ? undefined
        : `${s.runnerHours} of ${facts.spec.limits.maxRunnerHours ?? 0}`,
    ),
    ...row(
      'Scale set',
      s.scaleSet &&
        `${s.scaleSet.name}: ${s.scaleSet.assigned} jobs of at most ${s.scaleSet.capacity}`,
    ),
    ...row('Scope', s.scope),
    ...row('Labels', s.labels.join(', ')),
    ...row('Template', s.templateHash),
    ...row('Starts no runner', s.blockedReason),
    ...row('Last failure', s.lastFailure && `${s.lastFailure.runner}: ${s.lastFailure.message}`),
    ...row('Waits for', s.waitingFor),
    ...row('Holds', s.holds.join(', ')),
    ...row('Check of queued jobs', queueCheckText(s.queueCheck)),
    ...(runners.length === 0
      ? []
      : ['', '| Runner | State | Template | Since |', '|---|---|---|---|', ...runners]),
    ...(all.length > MAX_ROWS ? ['', `… and ${all.length - MAX_ROWS} more`] : []),
  ].join('\n');
}
