/** Plans which runners of a set to start, and which to drain. Pure. */
import type { SetRunnerStatus } from '../../core/contract/index.ts';

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
