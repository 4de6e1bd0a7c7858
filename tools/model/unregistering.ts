/** The steps of an unregistration: what is asynchronous in workflows/runner/unregister.ts, call by call, and how the CI server answers. */
import type { Mind, Plan } from './mind.ts';
import {
  believe,
  deletePod,
  hear,
  knowsPod,
  noteDeadline,
  sees,
  step,
  tearDown,
  timeOut,
} from './course.ts';
import { STARTED_MS } from './pods.ts';
import type { State } from './state.ts';
import { truth, type Move } from './world.ts';

const handled = (
  answer: 'removed' | 'absent' | 'unlisted' | 'busy',
  does: Partial<State> = {},
) => ({ answer, does });

/** What the CI server may do with a removal now. */
function answers(s: State, mind: Mind): readonly ReturnType<typeof handled>[] {
  const idKnown = mind.belief(s).runner.id !== undefined;
  if (s.registration !== 'there') return [handled(idKnown ? 'absent' : 'unlisted')];
  const unlisted = s.fresh && !idKnown ? [handled('unlisted')] : [];
  const removed = handled('removed', { registration: 'removed' });
  return [
    ...unlisted,
    ...(s.ciBusy ? [handled('busy'), ...(s.young ? [removed] : [])] : [removed]),
  ];
}

/** A list that was waited for is of today. */
const LIST_AGE_MS = 60_000;

const WHICH = {
  'gone (204)': 'removed',
  'not known (404)': 'absent',
  'not in its lists': 'unlisted',
  'busy (422)': 'busy',
} as const;

const REMOVING: readonly Move[] = Object.entries(WHICH).flatMap(([says, answer]) => {
  const handledAs = (s: State, mind: Mind) => answers(s, mind).find((one) => one.answer === answer);
  return [
    step('CI server', `the CI server answers the removal: ${says}`, 'removing', (s, mind) => {
      const { action, seen } = mind.plan(s);
      const found = handledAs(s, mind);
      if (found === undefined || action.kind !== 'remove') return undefined;
      if (answer === 'busy' && action.onBusy === 'retry')
        return s.callingOff || s.retried ? undefined : { ...s, retried: true };
      const known =
        s.registration === 'there' && (answer === 'removed' || answer === 'busy')
          ? believe(s, mind, { kind: 'known' })
          : s;
      const told =
        answer === 'busy' && !seen.ended
          ? noteDeadline(known, believe(known, mind, { kind: 'called busy' }), mind)
          : known;
      return hear({ ...told, ...found.does }, mind, {
        kind: 'answered',
        answer,
        retried: s.retried,
        atMs:
          (mind.heard(s).unlistedSinceMs ?? STARTED_MS) +
          (mind.heard(s).expiredWait === 'listRecheck' ? LIST_AGE_MS : 0),
        listMaxAgeMs: LIST_AGE_MS,
      });
    }),
    ...(answer === 'busy'
      ? []
      : [
          step(
            'mishap',
            `the CI server handles the removal (${says}), and the answer is lost with its worker`,
            'removing',
            (s, mind) => {
              const found = handledAs(s, mind);
              return found === undefined || s.retried
                ? undefined
                : { ...s, ...found.does, retried: true };
            },
          ),
        ]),
  ];
});

type Until = Extract<Plan['action'], { kind: 'wait' }>['until'] | 'nothing';

const untilOf = (s: State, mind: Mind): Until => {
  const { action } = mind.plan(s);
  return action.kind === 'wait' ? action.until : 'nothing';
};

/** Those that end only when what should have come before has not. */
const LONG_WAITS: ReadonlySet<Until> = new Set(['settled', 'terminated', 'jobDeadline']);

/** Whether the kubelet has still to publish what the probes say. */
const isUnpublished = (s: State): boolean =>
  s.pod === 'running' && s.node === 'well' && s.shown !== truth(s);

/** A wait has come to nothing. What the world promises to have done by then, it has. */
function expiredWait(s: State, mind: Mind, unpublished = false): State | undefined {
  const until = untilOf(s, mind);
  if (until === 'nothing' || !Number.isFinite(mind.plan(s).waitMs)) return undefined;
  const lives = s.pod === 'running' && s.node === 'well';
  if (until === 'idleConfirmed' && !unpublished && isUnpublished(s)) return undefined;
  if (until === 'terminated' && lives) return undefined;
  if (until !== 'idleConfirmed' && until !== 'absentCheck' && (s.young || s.fresh))
    return undefined;
  const { online, jobDeadline } = mind.belief(s).runner;
  const expires = until === 'jobDeadline' || (until === 'settled' && online);
  const waited = expires ? { ...s, expiredWait: true } : s;
  const late = until === 'jobDeadline' && jobDeadline !== undefined ? timeOut(s, mind) : waited;
  return hear(late, mind, { kind: 'expiredWait', wait: until });
}

/** Is the pod to go only unless its container has started, or is busy, and it is so? The API server refuses to delete what has changed since it was read. */
function isLeft(s: State, mind: Mind): boolean {
  const { action } = mind.plan(s);
  if (action.kind === 'tearDown' && action.unlessBusy === true)
    return s.told === 'no' && (s.pod === 'ended' || (s.pod === 'running' && s.shown === 'busy'));
  return (
    'unlessStarted' in action &&
    s.told === 'no' &&
    (s.pod === 'running' || (s.pod === 'ended' && s.started))
  );
}

export const UNREGISTERING: readonly Move[] = [
  ...REMOVING,
  step('promised', 'the removal is called off', 'removing', (s, mind) =>
    s.callingOff ? hear(s, mind, { kind: 'calledOff' }) : undefined,
  ),
  step('mishap', 'the removal is given up', 'removing', (s, mind) =>
    s.callingOff ? undefined : hear(s, mind, { kind: 'failed' }),
  ),
  step(
    'deadline',
    'the CI server has not answered in time (stopResponseTimeout)',
    'removing',
    (s, mind) => {
      const { seen } = mind.plan(s);
      return seen.stop !== undefined && !seen.ended && !s.callingOff
        ? hear(s, mind, { kind: 'expiredWait', wait: 'patience' })
        : undefined;
    },
  ),
  step('deadline', "the job's deadline is out, while it is asked about", 'removing', (s, mind) => {
    const { seen, action } = mind.plan(s);
    const known = mind.belief(s).runner.jobDeadline !== undefined;
    if (seen.ended || seen.stop !== undefined || s.callingOff || s.young || s.fresh)
      return undefined;
    if (!known && !(action.kind === 'remove' && action.onBusy === 'retry')) return undefined;
    const late = timeOut(s, mind);
    return hear(known ? late : { ...late, expiredWait: true }, mind, { kind: 'calledOff' });
  }),
  step('promised', 'the API server takes the deletion of the pod', 'stopping', (s, mind) => {
    const { action } = mind.plan(s);
    if (isLeft(s, mind))
      return hear(noteDeadline(s, sees(s, mind, 'see', 'watch'), mind), mind, { kind: 'changed' });
    if (action.kind === 'tearDown') return tearDown({ ...s, ...deletePod(s, false) }, mind);
    if (action.kind !== 'stopPod') return undefined;
    const asked = knowsPod(s, mind) ? { ...s, ...deletePod(s, action.overdue) } : s;
    const seen =
      asked.pod === 'gone' && knowsPod(s, mind) ? sees(asked, mind, 'see', 'watch') : asked;
    return hear(seen, mind, { kind: 'stopped', mode: action.mode });
  }),
  step(
    'mishap',
    'the API server takes the deletion of the pod, and the answer is lost',
    'stopping',
    (s, mind) => {
      const { action } = mind.plan(s);
      const overdue = action.kind === 'stopPod' && action.overdue;
      return s.told !== 'no' || overdue || isLeft(s, mind) || !knowsPod(s, mind)
        ? undefined
        : { ...s, ...deletePod(s, false), deleted: s.deleted };
    },
  ),
  ...(['watch', 'none'] as const).map((knowledge) =>
    step(
      knowledge === 'watch' ? 'promised' : 'mishap',
      knowledge === 'watch'
        ? 'the pod is looked at'
        : 'the pod is looked at by a worker that has only just seen it',
      'looking',
      (s, mind) => {
        const seen = knowsPod(s, mind) ? noteDeadline(s, sees(s, mind, 'see', knowledge), mind) : s;
        // More than a minute after the event the kubelet has published what the probes say, unless that is a mishap of its own.
        const old = s.young || (isUnpublished(s) && !s.late);
        return hear(old ? seen : believe(seen, mind, { kind: 'seen live' }), mind, {
          kind: 'looked',
        });
      },
    ),
  ),
  step('promised', 'the wait is over', 'waiting', (s, mind) =>
    LONG_WAITS.has(untilOf(s, mind)) ? undefined : expiredWait(s, mind),
  ),
  // A node under load, or one that is cut off for a moment.
  step(
    'mishap',
    'the probes are published later than idleConfirmation gives',
    'waiting',
    (s, mind) =>
      untilOf(s, mind) === 'idleConfirmed' && isUnpublished(s)
        ? expiredWait({ ...s, late: true }, mind, true)
        : undefined,
  ),
  step('deadline', 'the long wait is over', 'waiting', (s, mind) =>
    LONG_WAITS.has(untilOf(s, mind)) ? expiredWait(s, mind) : undefined,
  ),
];
