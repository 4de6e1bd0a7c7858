/**
 * The steps of the life itself: what is asynchronous in workflows/runner/ (comeUp, serve, unregister, tearDown), call by call. What is decided between
 * two calls is asked of the workflow's own functions (mind.ts). A worker may die under each call: what it did is done, and the next tries again.
 */
import {
  believe,
  deletePod,
  knowsPod,
  noteDeadline,
  proceed,
  sees,
  step,
  timeOut,
  unregister,
} from './course.ts';
import type { Mind } from './mind.ts';
import { beginning, isCommand, isSilent, isStatic, type State } from './state.ts';
import { UNREGISTERING } from './unregistering.ts';
import type { Move } from './world.ts';

const MADE = ['nothing', 'registration', 'Secret', 'pod'] as const;

/** The next thing that a provisioning makes. */
function make(s: State): State {
  const made = MADE[MADE.indexOf(s.made) + 1] ?? 'pod';
  // A static runner registers itself, later; a command never.
  if (made === 'registration')
    return {
      ...s,
      made,
      ...(isStatic(s) || isCommand(s) ? {} : { registration: 'there', fresh: true }),
    };
  return made === 'pod' ? { ...s, made, pod: 'pending' } : { ...s, made };
}

/** A registration that no pod will ever use is removed by its id. */
const drop = (s: State): State =>
  s.made === 'registration' && s.registration === 'there' ? { ...s, registration: 'removed' } : s;

const COMING_UP: readonly Move[] = [
  step(
    'promised',
    'the worker makes the next of registration, Secret and pod',
    'provisioning',
    (s) => (s.made === 'pod' ? undefined : make(s)),
  ),
  step('promised', 'the provisioning is answered', 'provisioning', (s, mind) =>
    s.made === 'pod'
      ? proceed({ ...sees(s, mind, 'provisioned', 'watch'), at: 'coming up' }, mind)
      : undefined,
  ),
  // Told so by the worker, which leaves no registration without a Secret, and answers where it has made the pod.
  step('mishap', 'the provisioning fails for good', 'provisioning', (s) =>
    s.made === 'pod' ? undefined : { ...drop(s), at: 'finding', failure: 'provisioning' },
  ),
  step('deadline', 'the provisioning has taken too long', 'provisioning', (s) => ({
    ...s,
    at: 'finding',
    failure: 'provisioning',
    cutOff: s.made !== 'pod',
  })),
  step('promised', 'the provisioning is called off', 'provisioning', (s, mind) =>
    mind.belief(s).cancel === undefined ? undefined : { ...drop(s), at: 'finding' },
  ),
  step('mishap', 'the provisioning is called off, its worker dead', 'provisioning', (s, mind) =>
    mind.belief(s).cancel === undefined || s.made === 'pod'
      ? undefined
      : { ...s, at: 'finding', cutOff: true },
  ),
  {
    kind: 'course',
    name: 'the worker that was given up makes the next',
    next: (s) => (s.cutOff ? { ...make(s), cutOff: make(s).made !== 'pod' } : undefined),
  },
  // Where a worker may still create, it is looked for again when none can (`intervals.lateCreationWindow`).
  step('promised', 'what the provisioning left is found', 'finding', (s, mind) => {
    const is = s.cutOff ? { ...s, cutOff: false, fresh: false } : s;
    const known =
      isStatic(is) || isCommand(is) || is.made === 'nothing' || is.made === 'registration'
        ? is
        : believe(is, mind, { kind: 'known' });
    const inDoubt = is.failure === 'none' || s.cutOff || is.made === 'pod';
    const unseen = inDoubt ? believe(known, mind, { kind: 'in doubt' }) : known;
    const found =
      is.made === 'pod' && is.pod !== 'gone' ? sees(known, mind, 'provisioned', 'none') : unseen;
    return is.failure === 'none'
      ? proceed({ ...found, at: 'coming up' }, mind)
      : unregister(found, mind);
  }),
  ...(['watch', 'none'] as const).map((knowledge) =>
    step(
      knowledge === 'watch' ? 'promised' : 'mishap',
      knowledge === 'watch'
        ? 'the wait for the pod to be online is answered'
        : '… by a worker that has only just seen the pod',
      'coming up',
      (s, mind) => {
        if (
          s.pod !== 'ended' &&
          s.pod !== 'gone' &&
          s.shown === 'down' &&
          !(s.pod === 'running' && isSilent(s)) &&
          s.problem !== 'image for 30 s' &&
          s.problem !== 'image name'
        )
          return undefined;
        const seen = sees(s, mind, 'see', knowledge);
        return proceed(noteDeadline(s, seen, mind), mind);
      },
    ),
  ),
  step(
    'mishap',
    'the wait for the pod to be online is answered from a watch that is silent',
    'coming up',
    (s, mind) => {
      if (s.pod !== 'running' || isSilent(s) || isCommand(s)) return undefined;
      if (s.watched === 'nothing' || s.watched === 'down' || s.watched === s.shown)
        return undefined;
      const view = mind.view({ ...s, shown: s.watched }, 'watch');
      return proceed(noteDeadline(s, believe(s, mind, { kind: 'see', view }), mind), mind);
    },
  ),
  step(
    'deadline',
    'a deadline of the way up is out: the pod is looked at',
    'coming up',
    (s, mind) => {
      const age = s.age === 'new' ? ('5 m' as const) : ('10 m' as const);
      const later = mind.belief(s).runner.pod?.startedAt === undefined ? { age } : { old: true };
      return proceed(sees({ ...s, ...later }, mind, 'see', 'watch'), mind);
    },
  ),
  step('CI server', 'the CI server shows the runner online', 'looking up', (s, mind) =>
    s.up && s.registration === 'there'
      ? proceed({ ...believe(s, mind, { kind: 'sighted' }), at: 'serving' }, mind)
      : undefined,
  ),
  step(
    'deadline',
    'the CI server has not shown the runner online in time',
    'looking up',
    (s, mind) =>
      unregister({ ...s, failure: 'never_registered', old: s.told === 'no' ? true : s.old }, mind),
  ),
];

const HEARING: readonly Move[] = (['watch', 'none'] as const).map((knowledge) => ({
  kind: knowledge === 'watch' ? 'promised' : 'mishap',
  name:
    knowledge === 'watch'
      ? "the wait for the runner's end is answered"
      : '… by a worker that has only just seen the pod',
  next(s, mind) {
    const { runner } = mind.belief(s);
    const silent = s.node === 'silent' && s.told !== 'no';
    if (
      s.at === 'over' ||
      s.at === 'replacing' ||
      runner.pod === undefined ||
      runner.ended !== undefined ||
      (s.pod !== 'ended' && s.pod !== 'gone' && !silent)
    )
      return undefined;
    return noteDeadline(s, sees(s, mind, 'ended', knowledge), mind);
  },
}));

const SERVING: readonly Move[] = [
  step('deadline', "the job's deadline is out", 'serving', (s, mind) => {
    const { busySince, podBusy } = mind.belief(s).runner;
    if (busySince === undefined) return undefined;
    // Nothing is stopped on an old view.
    const seen =
      podBusy === true && !isCommand(s) ? noteDeadline(s, sees(s, mind, 'see', 'watch'), mind) : s;
    return mind.belief(seen).runner.busySince === undefined ? seen : timeOut(seen, mind);
  }),
  step('mishap', 'the idle timeout is out', 'serving', (s, mind) =>
    mind.belief(s).runner.busySince === undefined
      ? believe(s, mind, { kind: 'cancel', mode: 'drain', by: 'idle_timeout' })
      : undefined,
  ),
];

/** The second runner of a life is the last one of which the model tells. */
function end(s: State, mind: Mind): State {
  const over: State = { ...s, at: 'over', verdict: mind.ending(s) };
  return mind.verdict(over).kind === 'replace' && mind.belief(s).runner.identity.attempt === 1
    ? { ...over, at: 'replacing' }
    : over;
}

const TEARING_DOWN: readonly Move[] = [
  step('promised', 'pod and Secret are deleted', 'tearing down', (s, mind) => {
    const asked: State = s.deleted ? s : { ...s, ...deletePod(s, false) };
    const gone = asked.pod === 'gone' || asked.pod === 'none';
    // A pod that the life does not know is not waited for.
    return gone || !knowsPod(s, mind) ? end(asked, mind) : { ...asked, at: 'awaiting gone' };
  }),
  step('promised', 'the pod is gone', 'awaiting gone', (s, mind) =>
    s.pod === 'gone' ? end(s, mind) : undefined,
  ),
  step(
    'deadline',
    'the pod has outlived its grace: it is deleted without',
    'awaiting gone',
    (s, mind) =>
      s.node === 'silent' && s.pod !== 'gone'
        ? end({ ...s, ...deletePod(s, true) }, mind)
        : undefined,
  ),
];

const REPLACING: readonly Move[] = [
  step(
    'promised',
    'another runner takes its place, unless the life was cancelled',
    'replacing',
    (s, mind) =>
      mind.belief(s).cancel === undefined
        ? { ...beginning(s.setup), belief: mind.replaced(s) }
        : { ...s, at: 'over', verdict: mind.ending(s) },
  ),
];

export const LIFE: readonly Move[] = [
  ...COMING_UP,
  ...HEARING,
  ...SERVING,
  ...UNREGISTERING,
  ...TEARING_DOWN,
  ...REPLACING,
];
