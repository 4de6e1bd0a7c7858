/** What the workflow does by itself between two steps, and what the calls of its steps do: for the moves of life.ts and unregistering.ts. */
import type { UnregistrationEvent } from '../../workflows/runner/unregisterFacts.ts';
import type { UnregistrationAction } from '../../workflows/runner/unregisterTable.ts';
import type { Mind } from './mind.ts';
import type { Op } from './ops.ts';
import type { Knowledge } from './pods.ts';
import { hasJob, isCommand, isLost, isStatic, type State } from './state.ts';
import type { Kind, Move } from './world.ts';

/** A step of the life that may be taken now. */
export function step(
  kind: Kind,
  name: string,
  at: State['at'],
  next: (s: State, mind: Mind) => State | undefined,
): Move {
  return { kind, name, at, next };
}

export const believe = (s: State, mind: Mind, op: Op): State => ({
  ...s,
  belief: mind.hear(s, op),
});
export const sees = (
  s: State,
  mind: Mind,
  kind: 'provisioned' | 'see' | 'ended',
  knowledge: Knowledge,
): State => believe(s, mind, { kind, view: mind.view(s, knowledge) });
export const knowsPod = (s: State, mind: Mind): boolean => mind.belief(s).runner.pod !== undefined;

/** What the workflow does by itself before it waits again. To be applied after everything that changes what it believes. */
export function proceed(s: State, mind: Mind): State {
  const { runner, cancel } = mind.belief(s);
  switch (s.at) {
    case 'coming up': {
      if (cancel !== undefined || runner.pod === undefined) return unregister(s, mind);
      const found = mind.comingUp(s);
      if (found.kind === 'ended')
        return proceed({ ...believe(s, mind, { kind: 'foundEnded' }), at: 'serving' }, mind);
      if (found.kind === 'online' || (found.kind === 'running' && isCommand(s)))
        return proceed(
          { ...noteDeadline(s, believe(s, mind, { kind: 'isUp' }), mind), at: 'serving' },
          mind,
        );
      if (found.kind === 'running') return proceed({ ...s, at: 'looking up' }, mind);
      return found.kind === 'failed'
        ? unregister({ ...s, failure: found.cause as State['failure'] }, mind)
        : s;
    }
    case 'looking up':
      return runner.ended !== undefined || cancel !== undefined || mind.hadJob(s)
        ? proceed({ ...s, at: 'serving' }, mind)
        : s;
    case 'serving':
      return runner.ended !== undefined || cancel !== undefined ? unregister(s, mind) : s;
    case 'stopping': {
      const { action } = mind.plan(s);
      return (action.kind === 'stopPod' || isUnlessBusy(action)) && mind.hasChanged(s)
        ? hear(s, mind, { kind: 'changed' })
        : s;
    }
    case 'waiting':
      return mind.hasChanged(s) ? hear(s, mind, { kind: 'changed' }) : s;
    case 'removing':
      return mind.hasChanged(s) ? { ...s, callingOff: true } : s;
    case 'provisioning':
    case 'finding':
    case 'looking':
    case 'tearing down':
    case 'awaiting gone':
    case 'replacing':
    case 'over':
      return s;
  }
}

/** Whether a deletion is called off when a job may have come. */
const isUnlessBusy = (action: UnregistrationAction): boolean =>
  action.kind === 'tearDown' && action.unlessBusy === true;

/** Notes whose deadline it is that the life has just set. */
export function noteDeadline(before: State, after: State, mind: Mind): State {
  const { runner: was } = mind.belief(before);
  const { runner: is } = mind.belief(after);
  const has = is.jobDeadline !== undefined;
  // Job B is always one that began later than whatever made the runner busy, or that itself.
  const renewed =
    is.busyJobKey !== was.busyJobKey &&
    (was.busyJobKey !== undefined || is.busyJobKey?.startsWith('2') === true);
  if (has === (was.jobDeadline !== undefined) && !renewed) return after;
  if (!has) return { ...after, deadlineOf: 'none' };
  // A missed probe shows a runner as busy before its first job. If the job starts before the next
  // probe is published, that deadline is the job's, early by seconds: an event of a job that started
  // later renews it.
  if (after.job === 'none' || after.job === 'A runs') return { ...after, deadlineOf: 'A' };
  return { ...after, deadlineOf: hasJob(after) ? 'B' : 'none' };
}

export function unregister(s: State, mind: Mind): State {
  return decide({ ...s, heard: mind.nothingHeard(s) }, mind);
}

export function hear(s: State, mind: Mind, news: UnregistrationEvent): State {
  return decide({ ...s, heard: mind.news(s, news), callingOff: false, retried: false }, mind);
}

function decide(s: State, mind: Mind): State {
  const plan = mind.decide(s);
  const { action, seen } = mind.plan({ ...s, plan });
  const planned = { ...s, plan };
  switch (action.kind) {
    case 'tearDown':
      return (action.unlessStarted ?? action.unlessBusy) === true
        ? { ...planned, at: 'stopping' }
        : tearDown(planned, mind);
    case 'handOff':
      return tearDown({ ...planned, handedOn: true }, mind);
    case 'remove':
      return { ...planned, at: 'removing', ...(seen.ended ? deletePod(planned, false) : {}) };
    case 'stopPod':
      return { ...planned, at: 'stopping' };
    case 'look':
      return { ...planned, at: 'looking' };
    case 'wait':
      return { ...planned, at: 'waiting' };
  }
}

/** The runner is unregistered: what its verdict goes by is fixed. */
export function tearDown(s: State, mind: Mind): State {
  const fixed: State = { ...believe(s, mind, { kind: 'unregistered' }), at: 'tearing down' };
  return { ...fixed, verdict: mind.unregistered(fixed) };
}

/** The API server takes the deletion of the pod and its Secret. @param atOnce - without grace */
export function deletePod(s: State, atOnce: boolean): Partial<State> {
  const deleted = { deleted: true };
  if (s.pod === 'none' || s.pod === 'gone') return deleted;
  if (atOnce || s.node === 'silent' ? atOnce : false)
    return {
      ...deleted,
      pod: 'gone',
      up: false,
      ...(hasJob(s)
        ? { job: s.job === 'A runs' ? 'A lost' : 'B lost', conclusion: 'failure' }
        : {}),
    };
  return s.told === 'no' ? { ...deleted, told: 'us' } : deleted;
}

/** The same moment without what makes no difference any more. */
export function tidy(s: State, mind: Mind): State {
  const { pod, at, registration } = s;
  const { runner, cancel } = mind.belief(s);
  const runs = pod === 'running';
  const comesUp =
    at === 'provisioning' || at === 'finding' || at === 'coming up' || at === 'looking up';
  const isOver = at === 'replacing' || at === 'over';
  const leaves = at === 'tearing down' || at === 'awaiting gone' || isOver;
  return {
    ...s,
    problem: pod === 'pending' ? s.problem : 'none',
    missed: runs && s.missed,
    up: runs && s.up,
    shown: runs ? s.shown : 'down',
    watched: runs ? s.watched : 'nothing',
    age: comesUp && (pod === 'none' || pod === 'pending') ? s.age : 'new',
    old: s.old && (comesUp || s.told !== 'no' || (isStatic(s) && registration === 'none')),
    young: s.young && registration === 'there',
    fresh: s.fresh && registration === 'there' && runner.id === undefined,
    made: comesUp || s.cutOff ? s.made : 'nothing',
    // That it is of another job than the one that runs is all that matters.
    deadlineOf:
      runner.jobDeadline === undefined ||
      leaves ||
      (hasJob(s) && !s.job.startsWith(s.deadlineOf)) ||
      (cancel !== undefined && cancel.mode !== 'drain')
        ? 'none'
        : s.deadlineOf,
    expiredWait: s.expiredWait && !leaves,
    late: s.late && at !== 'replacing' && (hasJob(s) || isLost(s)),
    plan: at === 'awaiting gone' || isOver ? 0 : s.plan,
    heard: leaves && !isOver ? mind.lastHeard(s) : s.heard,
  };
}

/** When the job's time is out: only the job whose time it is has had it. */
export const timeOut = (s: State, mind: Mind): State => ({
  ...believe(s, mind, { kind: 'cancel', mode: 'stop', by: 'run_timeout' }),
  expiredWait: !hasJob(s) || s.job.startsWith(s.deadlineOf),
});
