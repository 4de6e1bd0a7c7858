/**
 * What may happen around a life at any moment: in the pod, on its node, at the CI server, on the way to the workflow. The world keeps these
 * promises and no others:
 * - a runner takes a job only while it is registered and online; an ephemeral one takes one job, and exits with 0 by itself only after it or idle;
 * - the CI server knows of a job as soon as it starts, and for a while after it is over; it may answer a DELETE in the job's first minute with 204;
 * - its lists are a minute old at most; job events come late, twice, in another order or never;
 * - a well node starts nothing that was told to go, and ends it within its grace; it publishes probes within the time that `idleConfirmation`
 *   gives, or that it does not is a mishap;
 * - a checkpointing command that was told to go exits with 0 only when its work is complete;
 * - the API server shows a container's start as it happens;
 * - what has not registered when the registration deadline is out never will.
 */
import { podStateChange } from '../../activities/watcher/podStateNotifier.ts';
import type { Mind } from './mind.ts';
import { clockOf } from './pods.ts';
import {
  hasJob,
  isCommand,
  isDone,
  isEphemeral,
  isLost,
  isSilent,
  isStatic,
  type State,
} from './state.ts';

/**
 * `promised`: happens sooner or later; `CI server`: the same, as long as there is one; `deadline`: the same, if nothing else comes before: these
 * must end every wait. `course`: may happen or not, and is nothing out of the ordinary. `mishap`: something goes wrong, or somebody steps in. How many
 * mishaps and deadlines a story has is what bounds the exploration.
 */
export type Kind = 'promised' | 'CI server' | 'deadline' | 'course' | 'mishap';

export const isPromised = ({ kind }: Move): boolean =>
  kind === 'promised' || kind === 'CI server' || kind === 'deadline';
export const isMishap = ({ kind }: Move): boolean => kind === 'mishap' || kind === 'deadline';

/** One thing that may happen. @property next - `undefined`: not now */
export interface Move {
  readonly name: string;
  readonly kind: Kind;
  /** Only there in a life. @default anywhere */
  readonly at?: State['at'];
  readonly next: (state: State, mind: Mind) => State | undefined;
}

/** A change by simple condition. */
const when = (
  kind: Kind,
  name: string,
  may: (s: State) => boolean,
  then: (s: State) => Partial<State>,
): Move => ({ kind, name, next: (s) => (may(s) ? { ...s, ...then(s) } : undefined) });

const runs = ({ pod, node }: State): boolean => pod === 'running' && node === 'well';
const lose = (s: State): Partial<State> => ({
  up: false,
  missed: false,
  ...(hasJob(s)
    ? { job: s.job === 'A runs' ? 'A lost' : 'B lost', conclusion: 'failure', young: false }
    : {}),
});
const over = (s: State, conclusion: State['conclusion']): Partial<State> => ({
  job: s.job === 'A runs' ? 'A done' : 'B done',
  conclusion,
  young: false,
  fresh: false,
});
const ends = (
  s: State,
  exit: State['exit'],
  recorded: boolean,
  interrupted: boolean,
): Partial<State> => ({
  ...lose(s),
  pod: 'ended',
  exit,
  interrupted,
  recorded: recorded && !isSilent(s),
});
/** The runner process that has not ended in truth: its CI server hears of it. */
const isAlive = ({ pod, node }: State): boolean => pod === 'running' && node === 'well';

const POD: readonly Move[] = [
  when(
    'course',
    'the container starts',
    (s) => s.pod === 'pending' && s.problem === 'none' && s.told === 'no',
    (s) => ({ pod: 'running', started: true, ...(isCommand(s) ? { job: 'A runs' } : {}) }),
  ),
  ...(['unschedulable', 'image', 'image name'] as const).map((problem) =>
    when(
      'mishap',
      `the pod cannot start: ${problem}`,
      (s) => s.pod === 'pending' && s.problem === 'none',
      () => ({ problem }),
    ),
  ),
  when(
    'promised',
    'the problem with the image has lasted for 30 s',
    (s) => s.pod === 'pending' && s.problem === 'image',
    () => ({ problem: 'image for 30 s' }),
  ),
  when(
    'course',
    'what kept the pod from starting is over',
    (s) => s.pod === 'pending' && s.problem !== 'none',
    () => ({ problem: 'none' }),
  ),
  when(
    'course',
    'the runner comes online',
    (s) =>
      runs(s) &&
      !s.up &&
      s.job === 'none' &&
      s.told === 'no' &&
      !isCommand(s) &&
      (isStatic(s) ? !s.old && s.registration === 'none' : s.registration === 'there'),
    (s) => ({ up: true, ...(isStatic(s) ? { registration: 'there', fresh: true } : {}) }),
  ),
  when(
    'course',
    'the command is up',
    (s) => runs(s) && !s.up && isCommand(s),
    () => ({ up: true }),
  ),
  when(
    'promised',
    'the runner ends: its registration is gone',
    (s) => isCutLoose(s),
    (s) => ends(s, '1', true, false),
  ),
  when(
    'course',
    'the runner ends with 0: its registration is gone',
    (s) => isCutLoose(s),
    (s) => ends(s, '0', true, false),
  ),
  when(
    'promised',
    'the ephemeral runner exits with 0 after its job',
    (s) => runs(s) && s.job === 'A done' && isEphemeral(s),
    (s) => ends(s, '0', true, false),
  ),
  when(
    'promised',
    'the command exits with 0',
    (s) => runs(s) && isCommand(s) && hasJob(s),
    (s) => ({ ...ends({ ...s, job: 'A done' }, '0', true, false), job: 'A done' }),
  ),
  when(
    'mishap',
    'the runner exits with 0 while it is idle',
    (s) => runs(s) && !hasJob(s) && !isCommand(s),
    (s) => ends(s, '0', true, false),
  ),
  when(
    'mishap',
    'the runner crashes with 1',
    (s) => runs(s),
    (s) => ends(s, '1', true, false),
  ),
  when(
    'mishap',
    'the container is out of memory',
    (s) => runs(s),
    (s) => ends(s, '137, out of memory', false, false),
  ),
  when(
    'mishap',
    'somebody deletes the pod',
    (s) => s.told === 'no' && (s.pod === 'pending' || s.pod === 'running'),
    () => ({ told: 'deleted' }),
  ),
  when(
    'mishap',
    'the pod is evicted',
    (s) => s.told === 'no' && (s.pod === 'pending' || s.pod === 'running'),
    () => ({ told: 'evicted' }),
  ),
  when(
    'mishap',
    'the pod vanishes: somebody deletes it without grace',
    (s) => s.pod === 'pending' || s.pod === 'running' || s.pod === 'ended',
    (s) => ({ ...lose(s), pod: 'gone' }),
  ),
  when(
    'promised',
    'the pod, told to go, never starts and is gone',
    (s) => s.told !== 'no' && s.pod === 'pending',
    () => ({ pod: 'gone' }),
  ),
  when(
    'promised',
    'told to go, the runner is killed at the end of its grace',
    (s) => s.told !== 'no' && runs(s),
    (s) => ends(s, '143', false, true),
  ),
  when(
    'course',
    'told to go, the runner ends with 143',
    (s) => s.told !== 'no' && runs(s),
    (s) => ends(s, '143', true, true),
  ),
  when(
    'course',
    'told to go, the runner ends with 0',
    (s) => s.told !== 'no' && runs(s) && s.setup !== 'checkpointing command',
    (s) => ends(s, '0', true, true),
  ),
  when(
    'promised',
    'the pod that ended is gone',
    (s) => s.told !== 'no' && s.pod === 'ended' && s.node === 'well',
    () => ({ pod: 'gone' }),
  ),
  when(
    'mishap',
    'the node dies',
    (s) => runs(s),
    (s) => ({ ...lose(s), node: 'silent' }),
  ),
  when(
    'promised',
    "the dead node's pod is evicted",
    (s) => s.node === 'silent' && s.told === 'no' && s.pod === 'running',
    () => ({ told: 'evicted' }),
  ),
  when(
    'promised',
    'ten minutes have passed since the start',
    (s) =>
      s.pod === 'running' &&
      s.told === 'no' &&
      !s.old &&
      s.at !== 'coming up' &&
      s.registration === 'none' &&
      isStatic(s),
    () => ({ old: true, young: false, fresh: false }),
  ),
  when(
    'mishap',
    'a readiness probe is missed',
    (s) => runs(s) && s.up && !hasJob(s) && !s.missed && !isSilent(s) && !isCommand(s),
    () => ({ missed: true }),
  ),
  when(
    'promised',
    'the readiness probe answers again',
    (s) => runs(s) && s.missed,
    () => ({ missed: false }),
  ),
  {
    kind: 'promised',
    name: 'the kubelet publishes what the probes say',
    next: (s, mind) =>
      runs(s) && !isSilent(s) && s.shown !== truth(s)
        ? watch({ ...s, shown: truth(s) }, mind)
        : undefined,
  },
];

/** Without a registration it is of no use. An ephemeral one after its job ends for that. */
function isCutLoose(s: State): boolean {
  return (
    runs(s) &&
    !hasJob(s) &&
    s.registration === 'removed' &&
    s.told === 'no' &&
    !(isEphemeral(s) && isDone(s))
  );
}

/** What the probes would show now. */
export function truth(s: State): State['shown'] {
  if (!s.up) return 'down';
  return hasJob(s) || s.missed || (isEphemeral(s) && isDone(s)) ? 'busy' : 'ready';
}

const CI_SERVER: readonly Move[] = [
  when(
    'course',
    'job A starts',
    (s) => mayTakeJob(s) && s.job === 'none',
    () => ({ job: 'A runs', ciBusy: true, young: true }),
  ),
  when(
    'course',
    'job B starts',
    (s) => mayTakeJob(s) && s.job === 'A done' && isStatic(s),
    () => ({ job: 'B runs', ciBusy: true, young: true }),
  ),
  when(
    'promised',
    'the job ends in success',
    (s) => isAlive(s) && hasJob(s) && !isCommand(s),
    (s) => over(s, 'success'),
  ),
  when(
    'mishap',
    'the job fails',
    (s) => isAlive(s) && hasJob(s) && !isCommand(s),
    (s) => over(s, 'failure'),
  ),
  // GitHub frees a runner that died with its job in 10 to 15 minutes, and removes an ephemeral one after its job.
  when(
    'CI server',
    'the CI server notes that the job is over',
    (s) => s.ciBusy && (isDone(s) || isLost(s)),
    (s) => ({
      ciBusy: false,
      ...(isEphemeral(s) && s.registration === 'there' ? { registration: 'removed' } : {}),
    }),
  ),
  when(
    'promised',
    'a minute passes',
    (s) => s.young || s.fresh,
    () => ({ young: false, fresh: false }),
  ),
  when(
    'mishap',
    'somebody removes the registration',
    (s) => s.registration === 'there' && !s.ciBusy,
    () => ({ registration: 'removed' }),
  ),
];

function mayTakeJob(s: State): boolean {
  return (
    runs(s) && s.up && s.registration === 'there' && s.told === 'no' && !s.ciBusy && !isCommand(s)
  );
}

/** What comes later changes nothing: a verdict has been reached. But for a cancel, as long as another runner is to follow. */
const hears = (s: State): boolean => s.at !== 'over' && s.at !== 'replacing';

const NEWS: readonly Move[] = [
  ...(['A', 'B'] as const).flatMap((job) => [
    news(
      `the event "job ${job} in progress" arrives`,
      (s) => s.job === `${job} runs` || hasBegun(s, job),
      'in_progress',
      job,
    ),
    news(`the event "job ${job} completed" arrives`, (s) => isOver(s, job), 'completed', job),
  ]),
  {
    kind: 'mishap',
    name: 'another worker watches from now on',
    next: (s, mind) =>
      s.watched === 'nothing' ? undefined : watch({ ...s, watched: 'nothing' }, mind),
  },
  {
    kind: 'course',
    name: 'the podState signal arrives',
    next: (s, mind) =>
      hears(s) && s.signal !== 'none'
        ? watch(
            { ...s, signal: 'none', belief: mind.hear(s, { kind: 'podState', state: s.signal }) },
            mind,
          )
        : undefined,
  },
];

const hasBegun = ({ job }: State, which: 'A' | 'B'): boolean =>
  job !== 'none' && (which === 'A' || job.startsWith('B'));

/** Over, and the CI server knows. */
function isOver(s: State, which: 'A' | 'B'): boolean {
  return (
    (which === 'A' && s.job.startsWith('B')) || (s.job.startsWith(which) && !hasJob(s) && !s.ciBusy)
  );
}

function news(
  name: string,
  may: (s: State) => boolean,
  action: 'in_progress' | 'completed',
  job: 'A' | 'B',
): Move {
  return {
    kind: 'course',
    name,
    next(s, mind) {
      if (!may(s) || !hears(s) || isCommand(s)) return undefined;
      // Of job A the model does not remember how it ended once B has begun.
      const belief = mind.hear(s, {
        kind: 'job',
        action,
        job,
        conclusion: s.job.startsWith(job) ? s.conclusion : 'success',
      });
      return { ...s, belief };
    },
  };
}

/**
 * The watcher tells the workflow what is news, and has all time to: that a word of its is late, and what it says old, is seen in when the
 * signal arrives. What is news by then is told next.
 */
function watch(s: State, mind: Mind): State {
  if (
    s.pod !== 'running' ||
    s.signal !== 'none' ||
    s.watched === s.shown ||
    isSilent(s) ||
    isCommand(s)
  )
    return s;
  const pod = mind.viewAt(mind.view(s, 'watch'));
  const known =
    s.watched === 'nothing'
      ? undefined
      : mind.viewAt(mind.view({ ...s, shown: s.watched }, 'watch'));
  const state = podStateChange(pod, known, clockOf(s));
  // A runner for one job that was seen busy stays so for its watcher.
  const busyOrReady = pod.busy === false ? 'ready' : 'busy';
  const watched = pod.online === true ? busyOrReady : 'down';
  return { ...s, watched, ...(state === undefined ? {} : { signal: state }) };
}

/** A cancel of each mode, by each who may ask for it. */
const CANCELS: readonly Move[] = [
  cancel(
    'the update drain',
    'drain',
    'drain',
    (s) => s.at !== 'tearing down' && s.at !== 'awaiting gone' && s.at !== 'replacing',
  ),
  cancel('a cancel with mode drain', 'drain', 'cancelled', () => true),
  cancel('a cancel with mode stop', 'stop', 'cancelled', () => true),
  cancel('a cancel with mode force', 'force', 'cancelled', () => true),
];

function cancel(
  name: string,
  mode: 'drain' | 'stop' | 'force',
  by: 'drain' | 'cancelled',
  may: (s: State) => boolean,
): Move {
  return {
    kind: 'mishap',
    name: `${name} arrives`,
    next: (s, mind) =>
      s.at !== 'over' && may(s)
        ? { ...s, belief: mind.hear(s, { kind: 'cancel', mode, by }) }
        : undefined,
  };
}

export const WORLD: readonly Move[] = [...POD, ...CI_SERVER, ...NEWS, ...CANCELS];
