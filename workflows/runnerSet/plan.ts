/** Which runners to start, and which to drain. Pure. */
import type { SetRunnerStatus } from '../../core/contract/index.ts';

/** A runner of the set, as far as the plan needs it. */
export interface PlannedRunner {
  readonly workflowId: string;
  readonly generation: string;
  readonly state: SetRunnerStatus['state'];
  /** ms since the epoch. */
  readonly startedAt: number;
  readonly held: boolean;
  /** Ends by itself after its one job. */
  readonly ephemeral: boolean;
}

export interface PlanFacts {
  readonly now: number;
  readonly runners: readonly PlannedRunner[];
  /** Hash of the template of now. */
  readonly generation: string;
  readonly desired: number;
  /** Places of ephemeral runners that ended with a job of which no event has told: the event will lower the demand. */
  readonly guardedPlaces: number;
  /** How many runners may be started, by pauses and breakers. */
  readonly mayStart: number;
  readonly maxSurge: number;
  /** No scale-down before (ms since the epoch). */
  readonly scaleDownAt: number;
  /** `leave`: those that run go on, because an operator paused the set. `end`: all shall go, the set ends. */
  readonly mode: 'run' | 'leave' | 'end';
}

export interface SetPlan {
  readonly start: number;
  readonly drain: readonly { readonly workflowId: string; readonly why: string }[];
  /** Idle runners in excess that are kept until {@link PlanFacts.scaleDownAt}. */
  readonly excess: number;
  /** Runners that would be started but for the guard or `mayStart`. */
  readonly withheld: number;
}

/**
 * The plan for this moment.
 *
 * - Starts at once what is missing. While runners of another template are left, only `maxSurge` more than desired, those that leave included.
 * - Scales down idle runners only, oldest first, never before `scaleDownAt`.
 * - Rolls out by draining as many old runners as new ones are online: first those that are not up yet, then idle ones, then static ones
 *   that are busy, whose job may finish. An ephemeral runner that is busy ends by itself.
 * - Never touches a runner that is held, except when the whole set ends.
 */
export function planSet(facts: PlanFacts): SetPlan {
  const { runners, generation, mode } = facts;
  const staying = runners.filter(({ state }) => state !== 'draining');
  if (mode === 'end') return { start: 0, drain: staying.map(({ workflowId }) => ({ workflowId, why: 'the set ends' })), excess: 0, withheld: 0 };
  const current = staying.filter((runner) => runner.generation === generation);
  const old = staying.filter((runner) => runner.generation !== generation);
  const oldLeft = runners.filter((runner) => runner.generation !== generation).length;

  const missing = startable(facts, current.length, old.filter(({ held }) => held).length, oldLeft);
  const unguarded = Math.max(0, missing - facts.guardedPlaces);
  const start = Math.min(unguarded, facts.mayStart);
  const withheld = missing - start;
  if (mode === 'leave') return { start, drain: [], excess: 0, withheld };

  const rollout = rolloutDrains(facts, current, old);
  const inExcess = byAge(current.filter(({ state, held }) => state === 'idle' && !held)).slice(0, Math.max(0, current.length - facts.desired));
  if (facts.now < facts.scaleDownAt) return { start, drain: rollout, excess: inExcess.length, withheld };
  const scaleDown = inExcess.map(({ workflowId }) => ({ workflowId, why: 'more runners are idle than wanted' }));
  return { start, drain: [...rollout, ...scaleDown], excess: 0, withheld };
}

function startable({ desired, maxSurge }: PlanFacts, current: number, oldHeld: number, oldLeft: number): number {
  const missing = desired - current - oldHeld;
  const room = oldLeft === 0 ? missing : desired + maxSurge - current - oldLeft;
  return Math.max(0, Math.min(missing, room));
}

function rolloutDrains({ desired, mayStart }: PlanFacts, current: readonly PlannedRunner[], old: readonly PlannedRunner[]): SetPlan['drain'] {
  const online = current.filter(({ state }) => state === 'idle' || state === 'busy').length;
  const spare = old.length + online - desired;
  // Without a way to start new ones the old ones are all there is, unless nothing wants them.
  if (spare <= 0 || (mayStart === 0 && online === 0 && desired > 0)) return [];
  const free = old.filter(({ held }) => !held);
  const inTurn = [
    ...byAge(free.filter(({ state }) => state === 'starting')),
    ...byAge(free.filter(({ state }) => state === 'idle')),
    ...byAge(free.filter(({ state, ephemeral }) => state === 'busy' && !ephemeral)),
  ];
  return inTurn.slice(0, spare).map(({ workflowId }) => ({ workflowId, why: 'the template has changed' }));
}

/** Oldest first; of the same age in the order of their ids, so that a plan made twice is the same. */
function byAge(runners: readonly PlannedRunner[]): PlannedRunner[] {
  return runners.toSorted((a, b) => a.startedAt - b.startedAt || (a.workflowId < b.workflowId ? -1 : 1));
}
