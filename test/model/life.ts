/**
 * The steps of the life itself: what is asynchronous in workflows/runner/ (comeUp, serve, unregister, tearDown), call by call. What is decided between
 * two calls is asked of the workflow's own functions (mind.ts). A worker may die under each call: what it did is done, and the next tries again.
 */
import type { UnregistrationNews } from '../../workflows/runner/unregisterFacts.ts';
import type { Mind, Plan } from './mind.ts';
import type { Op } from './ops.ts';
import { STARTED_MS, type Knowledge } from './pods.ts';
import { hasJob, isCommand, isSilent, isStatic, type State } from './state.ts';
import { truth, type Kind, type Move } from './world.ts';

/** A step of the life that may be taken now. */
function step(kind: Kind, name: string, at: State['at'], next: (s: State, mind: Mind) => State | undefined): Move {
  return { kind, name, at, next };
}

const believe = (s: State, mind: Mind, op: Op): State => ({ ...s, belief: mind.hear(s, op) });
const sees = (s: State, mind: Mind, kind: 'provisioned' | 'see' | 'ended', knowledge: Knowledge): State => believe(s, mind, { kind, view: mind.view(s, knowledge) });
const knowsPod = (s: State, mind: Mind): boolean => mind.belief(s).runner.pod !== undefined;

/** What the workflow does by itself before it waits again. To be applied after everything that changes what it believes. */
export function proceed(s: State, mind: Mind): State {
  const { runner, cancel } = mind.belief(s);
  switch (s.at) {
    case 'coming up': {
      if (cancel !== undefined || runner.pod === undefined) return unregister(s, mind);
      const found = mind.comingUp(s);
      if (found.kind === 'ended') return proceed({ ...believe(s, mind, { kind: 'foundEnded' }), at: 'serving' }, mind);
      if (found.kind === 'online' || (found.kind === 'running' && isCommand(s))) return proceed({ ...noteDeadline(s, believe(s, mind, { kind: 'isUp' }), mind), at: 'serving' }, mind);
      if (found.kind === 'running') return proceed({ ...s, at: 'looking up' }, mind);
      return found.kind === 'failed' ? unregister({ ...s, failure: found.cause as State['failure'] }, mind) : s;
    }
    case 'looking up':
      return runner.ended !== undefined || cancel !== undefined || mind.sawJob(s) ? proceed({ ...s, at: 'serving' }, mind) : s;
    case 'serving':
      return runner.ended !== undefined || cancel !== undefined ? unregister(s, mind) : s;
    case 'stopping':
      return mind.plan(s).action.kind === 'stopPod' && mind.hasChanged(s) ? hear(s, mind, { kind: 'changed' }) : s;
    case 'waiting':
      return mind.hasChanged(s) ? hear(s, mind, { kind: 'changed' }) : s;
    case 'removing':
      return mind.hasChanged(s) ? { ...s, callingOff: true } : s;
    case 'provisioning':
    case 'finding':
    case 'looking':
    case 'tearing down':
    case 'awaiting gone':
    case 'over':
      return s;
  }
}

/** Notes whose deadline it is that the life has just set. */
export function noteDeadline(before: State, after: State, mind: Mind): State {
  const { runner: was } = mind.belief(before);
  const { runner: is } = mind.belief(after);
  const has = is.jobDeadline !== undefined;
  const renewed = was.busyWith !== undefined && is.busyWith !== was.busyWith;
  if (has === (was.jobDeadline !== undefined) && !renewed) return after;
  return { ...after, deadlineOf: !has || !hasJob(after) ? 'none' : after.job === 'A runs' ? 'A' : 'B' };
}

function unregister(s: State, mind: Mind): State {
  return decide({ ...s, heard: mind.nothingHeard(s) }, mind);
}

function hear(s: State, mind: Mind, news: UnregistrationNews): State {
  return decide({ ...s, heard: mind.news(s, news), callingOff: false, retried: false }, mind);
}

function decide(s: State, mind: Mind): State {
  const plan = mind.decide(s);
  const { action, seen } = mind.plan({ ...s, plan });
  const planned = { ...s, plan };
  switch (action.kind) {
    case 'tearDown':
      return { ...planned, at: action.unlessStarted === true ? 'stopping' : 'tearing down' };
    case 'handOff':
      return { ...planned, at: 'tearing down', handedOn: true };
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

/** The API server takes the deletion of the pod and its Secret. @param atOnce - without grace */
function deletePod(s: State, atOnce: boolean): Partial<State> {
  const deleted = { deleted: true };
  if (s.pod === 'none' || s.pod === 'gone') return deleted;
  if (atOnce || s.node === 'silent' ? atOnce : false) return { ...deleted, pod: 'gone', up: false, ...(hasJob(s) ? { job: s.job === 'A runs' ? 'A lost' : 'B lost', conclusion: 'failure' } : {}) };
  return s.told === 'no' ? { ...deleted, told: 'us' } : deleted;
}

const MADE = ['nothing', 'registration', 'Secret', 'pod'] as const;

/** The next thing that a provisioning makes. */
function make(s: State): State {
  const made = MADE[MADE.indexOf(s.made) + 1] ?? 'pod';
  // A static runner registers itself, later; a command never.
  if (made === 'registration') return { ...s, made, ...(isStatic(s) || isCommand(s) ? {} : { registration: 'there', fresh: true }) };
  return made === 'pod' ? { ...s, made, pod: 'pending' } : { ...s, made };
}

/** A registration that no pod will ever use is removed by its id. */
const drop = (s: State): State => (s.made === 'registration' && s.registration === 'there' ? { ...s, registration: 'removed' } : s);

const COMING_UP: readonly Move[] = [
  step('promised', 'the worker makes the next of registration, Secret and pod', 'provisioning', (s) => (s.made === 'pod' ? undefined : make(s))),
  step('promised', 'the provisioning is answered', 'provisioning', (s, mind) => (s.made === 'pod' ? proceed({ ...sees(s, mind, 'provisioned', 'watch'), at: 'coming up' }, mind) : undefined)),
  // Told so by the worker, which leaves no registration without a Secret.
  step('mishap', 'the provisioning fails for good', 'provisioning', (s) => ({ ...drop(s), at: 'finding', failure: 'provisioning' })),
  step('deadline', 'the provisioning has taken too long', 'provisioning', (s) => ({ ...s, at: 'finding', failure: 'provisioning', cutOff: s.made !== 'pod' })),
  step('promised', 'the provisioning is called off', 'provisioning', (s, mind) => (mind.belief(s).cancel === undefined ? undefined : { ...drop(s), at: 'finding' })),
  step('mishap', 'the provisioning is called off, its worker dead', 'provisioning', (s, mind) => (mind.belief(s).cancel === undefined || s.made === 'pod' ? undefined : { ...s, at: 'finding', cutOff: true })),
  { kind: 'course', name: 'the worker that was given up makes the next', next: (s) => (s.cutOff ? { ...make(s), cutOff: make(s).made !== 'pod' } : undefined) },
  // Where a worker may still create, it is looked for again when none can (`intervals.lateCreation`).
  step('promised', 'what the provisioning left is found', 'finding', (s, mind) => {
    const is = s.cutOff ? { ...s, cutOff: false, fresh: false } : s;
    const known = isStatic(is) || isCommand(is) || is.made === 'nothing' || is.made === 'registration' ? is : believe(is, mind, { kind: 'known' });
    const found = is.made === 'pod' && is.pod !== 'gone' ? sees(known, mind, 'provisioned', 'none') : known;
    return is.failure === 'none' ? proceed({ ...found, at: 'coming up' }, mind) : unregister(found, mind);
  }),
  ...(['watch', 'none'] as const).map((knowledge) =>
    step(knowledge === 'watch' ? 'promised' : 'mishap', knowledge === 'watch' ? 'the wait for the pod to be online is answered' : '… by a worker that has only just seen the pod', 'coming up', (s, mind) => {
      if (s.pod !== 'ended' && s.pod !== 'gone' && s.shown === 'down' && !(s.pod === 'running' && isSilent(s)) && s.problem !== 'image for 30 s' && s.problem !== 'image name') return undefined;
      const seen = sees(s, mind, 'see', knowledge);
      return proceed(noteDeadline(s, seen, mind), mind);
    }),
  ),
  step('deadline', 'a deadline of the way up is out: the pod is looked at', 'coming up', (s, mind) => {
    const later = mind.belief(s).runner.pod?.startedAt !== undefined ? { old: true } : s.age === 'new' ? { age: '5 m' as const } : { age: '10 m' as const };
    return proceed(sees({ ...s, ...later }, mind, 'see', 'watch'), mind);
  }),
  step('CI server', 'the CI server shows the runner online', 'looking up', (s, mind) => (s.up && s.registration === 'there' ? proceed({ ...believe(s, mind, { kind: 'sighted' }), at: 'serving' }, mind) : undefined)),
  step('deadline', 'the CI server has not shown the runner online in time', 'looking up', (s, mind) => unregister({ ...s, failure: 'never_registered', old: s.told === 'no' ? true : s.old }, mind)),
];

const HEARING: readonly Move[] = (['watch', 'none'] as const).map((knowledge) => ({
  kind: knowledge === 'watch' ? 'promised' : 'mishap',
  name: knowledge === 'watch' ? "the wait for the runner's end is answered" : '… by a worker that has only just seen the pod',
  next(s, mind) {
    const { runner } = mind.belief(s);
    const silent = s.node === 'silent' && s.told !== 'no';
    if (s.at === 'over' || runner.pod === undefined || runner.ended !== undefined || (s.pod !== 'ended' && s.pod !== 'gone' && !silent)) return undefined;
    return noteDeadline(s, sees(s, mind, 'ended', knowledge), mind);
  },
}));

/** When the job's time is out: only the job whose time it is has had it. */
const timeOut = (s: State, mind: Mind): State => ({ ...believe(s, mind, { kind: 'cancel', mode: 'stop', by: 'run_timeout' }), outOfTime: !hasJob(s) || s.job.startsWith(s.deadlineOf) });

const SERVING: readonly Move[] = [
  step('deadline', "the job's deadline is out", 'serving', (s, mind) => {
    const { busySince, podBusy } = mind.belief(s).runner;
    if (busySince === undefined) return undefined;
    // Nothing is stopped on an old view.
    const seen = podBusy === true && !isCommand(s) ? noteDeadline(s, sees(s, mind, 'see', 'watch'), mind) : s;
    return mind.belief(seen).runner.busySince === undefined ? seen : timeOut(seen, mind);
  }),
  step('mishap', 'the idle timeout is out', 'serving', (s, mind) => (mind.belief(s).runner.busySince === undefined ? believe(s, mind, { kind: 'cancel', mode: 'drain', by: 'idle_timeout' }) : undefined)),
];

const handled = (answer: 'removed' | 'absent' | 'unlisted' | 'busy', does: Partial<State> = {}) => ({ answer, does });

/** What the CI server may do with a removal now. */
function answers(s: State, mind: Mind): readonly ReturnType<typeof handled>[] {
  const idKnown = mind.belief(s).runner.id !== undefined;
  if (s.registration !== 'there') return [handled(idKnown ? 'absent' : 'unlisted')];
  const unlisted = s.fresh && !idKnown ? [handled('unlisted')] : [];
  const removed = handled('removed', { registration: 'removed' });
  return [...unlisted, ...(s.ciBusy ? [handled('busy'), ...(s.young ? [removed] : [])] : [removed])];
}

/** A list that was waited for is of today. */
const LIST_AGE_MS = 60_000;

const WHICH = { 'gone (204)': 'removed', 'not known (404)': 'absent', 'not in its lists': 'unlisted', 'busy (422)': 'busy' } as const;

const REMOVING: readonly Move[] = Object.entries(WHICH).flatMap(([says, answer]) => {
  const handledAs = (s: State, mind: Mind) => answers(s, mind).find((one) => one.answer === answer);
  return [
    step('CI server', `the CI server answers the removal: ${says}`, 'removing', (s, mind) => {
      const { action, seen } = mind.plan(s);
      const found = handledAs(s, mind);
      if (found === undefined || action.kind !== 'remove') return undefined;
      if (answer === 'busy' && action.onBusy === 'retry') return s.callingOff || s.retried ? undefined : { ...s, retried: true };
      const known = s.registration === 'there' && (answer === 'removed' || answer === 'busy') ? believe(s, mind, { kind: 'known' }) : s;
      const told = answer === 'busy' && !seen.ended ? believe(known, mind, { kind: 'called busy' }) : known;
      return hear({ ...told, ...found.does }, mind, { kind: 'answered', answer, retried: s.retried, atMs: STARTED_MS + (mind.heard(s).outOfTime === 'listRecheck' ? LIST_AGE_MS : 0), listAgeMs: LIST_AGE_MS });
    }),
    ...(answer === 'busy' ? [] : [step('mishap', `the CI server handles the removal (${says}), and the answer is lost with its worker`, 'removing', (s, mind) => {
      const found = handledAs(s, mind);
      return found === undefined || s.retried ? undefined : { ...s, ...found.does, retried: true };
    })]),
  ];
});

type Until = Extract<Plan['action'], { kind: 'wait' }>['until'] | 'nothing';

const untilOf = (s: State, mind: Mind): Until => {
  const { action } = mind.plan(s);
  return action.kind === 'wait' ? action.until : 'nothing';
};

/** Those that end only when what should have come before has not. */
const LONG_WAITS: ReadonlySet<Until> = new Set(['settled', 'terminated', 'jobDeadline']);

/** A wait has come to nothing. What the world promises to have done by then, it has. */
function outOfTime(s: State, mind: Mind): State | undefined {
  const until = untilOf(s, mind);
  if (until === 'nothing' || !Number.isFinite(mind.plan(s).waitMs)) return undefined;
  const lives = s.pod === 'running' && s.node === 'well';
  if (until === 'idleConfirmed' && lives && s.shown !== truth(s)) return undefined;
  if (until === 'terminated' && lives) return undefined;
  if (until !== 'idleConfirmed' && until !== 'absentRecheck' && (s.young || s.fresh)) return undefined;
  const { online, jobDeadline } = mind.belief(s).runner;
  const late = until === 'jobDeadline' && jobDeadline !== undefined ? timeOut(s, mind) : until === 'jobDeadline' || (until === 'settled' && online) ? { ...s, outOfTime: true } : s;
  return hear(late, mind, { kind: 'outOfTime', wait: until });
}

/** Is the pod to go only unless its container has started, and it has? The API server refuses to delete what has changed since it was read. */
function isLeft(s: State, mind: Mind): boolean {
  const { action } = mind.plan(s);
  return 'unlessStarted' in action && s.told === 'no' && (s.pod === 'running' || (s.pod === 'ended' && s.started));
}

const UNREGISTERING: readonly Move[] = [
  ...REMOVING,
  step('promised', 'the removal is called off', 'removing', (s, mind) => (s.callingOff ? hear(s, mind, { kind: 'calledOff' }) : undefined)),
  step('mishap', 'the removal is given up', 'removing', (s, mind) => (s.callingOff ? undefined : hear(s, mind, { kind: 'failed' }))),
  step('deadline', 'the CI server has not answered in time (stopPatience)', 'removing', (s, mind) => {
    const { seen } = mind.plan(s);
    return seen.stop !== undefined && !seen.ended && !s.callingOff ? hear(s, mind, { kind: 'outOfTime', wait: 'patience' }) : undefined;
  }),
  step('promised', 'the API server takes the deletion of the pod', 'stopping', (s, mind) => {
    const { action } = mind.plan(s);
    if (isLeft(s, mind)) return hear(noteDeadline(s, sees(s, mind, 'see', 'watch'), mind), mind, { kind: 'changed' });
    if (action.kind === 'tearDown') return { ...s, ...deletePod(s, false), at: 'tearing down' };
    if (action.kind !== 'stopPod') return undefined;
    const asked = knowsPod(s, mind) ? { ...s, ...deletePod(s, action.overdue) } : s;
    const seen = asked.pod === 'gone' && knowsPod(s, mind) ? sees(asked, mind, 'see', 'watch') : asked;
    return hear(seen, mind, { kind: 'stopped', mode: action.mode });
  }),
  step('mishap', 'the API server takes the deletion of the pod, and the answer is lost', 'stopping', (s, mind) => {
    const { action } = mind.plan(s);
    const overdue = action.kind === 'stopPod' && action.overdue;
    return s.told !== 'no' || overdue || isLeft(s, mind) || !knowsPod(s, mind) ? undefined : { ...s, ...deletePod(s, false), deleted: s.deleted };
  }),
  ...(['watch', 'none'] as const).map((knowledge) =>
    step(knowledge === 'watch' ? 'promised' : 'mishap', knowledge === 'watch' ? 'the pod is looked at' : 'the pod is looked at by a worker that has only just seen it', 'looking', (s, mind) => {
      const seen = knowsPod(s, mind) ? noteDeadline(s, sees(s, mind, 'see', knowledge), mind) : s;
      return hear(seen, mind, { kind: 'looked' });
    }),
  ),
  step('promised', 'the wait is over', 'waiting', (s, mind) => (LONG_WAITS.has(untilOf(s, mind)) ? undefined : outOfTime(s, mind))),
  step('deadline', 'the long wait is over', 'waiting', (s, mind) => (LONG_WAITS.has(untilOf(s, mind)) ? outOfTime(s, mind) : undefined)),
];

const end = (s: State, mind: Mind): State => ({ ...s, at: 'over', verdict: mind.ending(s) });

const TEARING_DOWN: readonly Move[] = [
  step('promised', 'pod and Secret are deleted', 'tearing down', (s, mind) => {
    const asked: State = s.deleted ? s : { ...s, ...deletePod(s, false) };
    const gone = asked.pod === 'gone' || asked.pod === 'none';
    // A pod that the life does not know is not waited for.
    return gone || !knowsPod(s, mind) ? end(asked, mind) : { ...asked, at: 'awaiting gone' };
  }),
  step('promised', 'the pod is gone', 'awaiting gone', (s, mind) => (s.pod === 'gone' ? end(s, mind) : undefined)),
  step('deadline', 'the pod has outlived its grace: it is deleted without', 'awaiting gone', (s, mind) => (s.node === 'silent' && s.pod !== 'gone' ? end({ ...s, ...deletePod(s, true) }, mind) : undefined)),
];

export const LIFE: readonly Move[] = [...COMING_UP, ...HEARING, ...SERVING, ...UNREGISTERING, ...TEARING_DOWN];

/** The same moment without what makes no difference any more. */
export function tidy(s: State, mind: Mind): State {
  const { pod, at, registration } = s;
  const { runner, cancel } = mind.belief(s);
  const runs = pod === 'running';
  const comesUp = at === 'provisioning' || at === 'finding' || at === 'coming up' || at === 'looking up';
  const leaves = at === 'tearing down' || at === 'awaiting gone' || at === 'over';
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
    deadlineOf: runner.jobDeadline === undefined || leaves || (cancel !== undefined && cancel.mode !== 'drain') ? 'none' : s.deadlineOf,
    outOfTime: s.outOfTime && !leaves,
    plan: at === 'awaiting gone' || at === 'over' ? 0 : s.plan,
    heard: leaves && at !== 'over' ? mind.lastHeard(s) : s.heard,
  };
}
