/** What happens in the pod and on its node. */
import {
  hasJob,
  isCommand,
  isDone,
  isEphemeral,
  isStatic,
  lacksSupervisor,
  type State,
} from './state.ts';
import { transition, type Transition } from './transition.ts';
import { notifyWorkflow } from './watcher.ts';

const runs = ({ pod, node }: State): boolean => pod === 'running' && node === 'ready';

const startsAndRuns = ({ pod }: State): boolean => pod === 'pending' || pod === 'running';

/** Returns the job and the runner process after the container has ended. */
const withoutProcess = (s: State): Partial<State> => ({
  online: false,
  probeMissed: false,
  ...(hasJob(s)
    ? {
        job: s.job === 'A running' ? 'A lost' : 'B lost',
        conclusion: 'failure',
        jobJustStarted: false,
      }
    : {}),
});

interface ContainerEnd {
  readonly exit: State['exit'];
  /** Whether the supervisor, if there is one, writes its termination message. @default true */
  readonly recorded?: boolean;
  /** Whether SIGTERM was the cause. @default false */
  readonly interrupted?: boolean;
}

const ends = (
  s: State,
  { exit, recorded = true, interrupted = false }: ContainerEnd,
): Partial<State> => ({
  ...withoutProcess(s),
  pod: 'ended',
  exit,
  interrupted,
  exitRecorded: recorded && !lacksSupervisor(s),
});

/** Whether the registration is gone, which ends a runner, except an ephemeral one after its job. */
function lostRegistration(s: State): boolean {
  return (
    runs(s) &&
    !hasJob(s) &&
    s.registration === 'removed' &&
    s.deletedBy === 'none' &&
    !(isEphemeral(s) && isDone(s))
  );
}

/** Returns the current result of the probes, published or not. */
export function probeResult(s: State): State['published'] {
  if (!s.online) return 'down';
  return hasJob(s) || s.probeMissed || (isEphemeral(s) && isDone(s)) ? 'busy' : 'ready';
}

const START: readonly Transition[] = [
  transition(
    'optional',
    'the container starts',
    (s) => s.pod === 'pending' && s.problem === 'none' && s.deletedBy === 'none',
    (s) => ({ pod: 'running', started: true, ...(isCommand(s) ? { job: 'A running' } : {}) }),
  ),
  ...(['unschedulable', 'image', 'image name'] as const).map((problem) =>
    transition(
      'fault',
      `the pod cannot start: ${problem}`,
      (s) => s.pod === 'pending' && s.problem === 'none',
      () => ({ problem }),
    ),
  ),
  transition(
    'fair',
    'the problem with the image has lasted for 30 s',
    (s) => s.pod === 'pending' && s.problem === 'image',
    () => ({ problem: 'image for 30 s' }),
  ),
  transition(
    'optional',
    'the problem that prevented the start of the pod ends',
    (s) => s.pod === 'pending' && s.problem !== 'none',
    () => ({ problem: 'none' }),
  ),
  transition(
    'optional',
    'the runner comes online',
    (s) =>
      runs(s) &&
      !s.online &&
      s.job === 'none' &&
      s.deletedBy === 'none' &&
      !isCommand(s) &&
      (isStatic(s)
        ? !s.pastRegistrationDeadline && s.registration === 'none'
        : s.registration === 'registered'),
    (s) => ({
      online: true,
      ...(isStatic(s) ? { registration: 'registered', justRegistered: true } : {}),
    }),
  ),
  transition(
    'optional',
    'the command is ready',
    (s) => runs(s) && !s.online && isCommand(s),
    () => ({ online: true }),
  ),
];

const EXITS: readonly Transition[] = [
  transition('fair', 'the runner exits with 1: its registration is gone', lostRegistration, (s) =>
    ends(s, { exit: '1' }),
  ),
  transition(
    'optional',
    'the runner exits with 0: its registration is gone',
    lostRegistration,
    (s) => ends(s, { exit: '0' }),
  ),
  transition(
    'fair',
    'the ephemeral runner exits with 0 after its job',
    (s) => runs(s) && s.job === 'A done' && isEphemeral(s),
    (s) => ends(s, { exit: '0' }),
  ),
  transition(
    'fair',
    'the command exits with 0',
    (s) => runs(s) && isCommand(s) && hasJob(s),
    (s) => ({ ...ends({ ...s, job: 'A done' }, { exit: '0' }), job: 'A done' }),
  ),
  transition(
    'fault',
    'the runner exits with 0 while it is idle',
    (s) => runs(s) && !hasJob(s) && !isCommand(s),
    (s) => ends(s, { exit: '0' }),
  ),
  transition('fault', 'the runner crashes with 1', runs, (s) => ends(s, { exit: '1' })),
  transition('fault', 'the container is out of memory', runs, (s) =>
    ends(s, { exit: '137, out of memory', recorded: false }),
  ),
];

const DELETION: readonly Transition[] = [
  transition(
    'fault',
    'a user deletes the pod',
    (s) => s.deletedBy === 'none' && startsAndRuns(s),
    () => ({ deletedBy: 'user' }),
  ),
  transition(
    'fault',
    'the pod is evicted',
    (s) => s.deletedBy === 'none' && startsAndRuns(s),
    () => ({ deletedBy: 'eviction' }),
  ),
  transition(
    'fault',
    'a user deletes the pod without a grace period',
    (s) => startsAndRuns(s) || s.pod === 'ended',
    (s) => ({ ...withoutProcess(s), pod: 'gone' }),
  ),
  transition(
    'fair',
    'the terminating pod is removed before it has started',
    (s) => s.deletedBy !== 'none' && s.pod === 'pending',
    () => ({ pod: 'gone' }),
  ),
  transition(
    'fair',
    'the terminating runner is killed at the end of its grace period',
    (s) => s.deletedBy !== 'none' && runs(s),
    (s) => ends(s, { exit: '143', recorded: false, interrupted: true }),
  ),
  transition(
    'optional',
    'the terminating runner exits with 143',
    (s) => s.deletedBy !== 'none' && runs(s),
    (s) => ends(s, { exit: '143', interrupted: true }),
  ),
  transition(
    'optional',
    'the terminating runner exits with 0',
    (s) => s.deletedBy !== 'none' && runs(s) && s.setup !== 'checkpointing command',
    (s) => ends(s, { exit: '0', interrupted: true }),
  ),
  transition(
    'fair',
    'the ended pod is removed',
    (s) => s.deletedBy !== 'none' && s.pod === 'ended' && s.node === 'ready',
    () => ({ pod: 'gone' }),
  ),
  transition('fault', 'the node dies', runs, (s) => ({
    ...withoutProcess(s),
    node: 'unreachable',
  })),
  transition(
    'fair',
    'the pod of the unreachable node is evicted',
    (s) => s.node === 'unreachable' && s.deletedBy === 'none' && s.pod === 'running',
    () => ({ deletedBy: 'eviction' }),
  ),
];

const TIME_AND_PROBES: readonly Transition[] = [
  transition(
    'fair',
    'ten minutes have passed since the start',
    (s) =>
      s.pod === 'running' &&
      s.deletedBy === 'none' &&
      !s.pastRegistrationDeadline &&
      s.stage !== 'starting' &&
      s.registration === 'none' &&
      isStatic(s),
    () => ({ pastRegistrationDeadline: true, jobJustStarted: false, justRegistered: false }),
  ),
  transition(
    'fault',
    'a readiness probe is missed',
    (s) =>
      runs(s) && s.online && !hasJob(s) && !s.probeMissed && !lacksSupervisor(s) && !isCommand(s),
    () => ({ probeMissed: true }),
  ),
  transition(
    'fair',
    'the readiness probe responds again',
    (s) => runs(s) && s.probeMissed,
    () => ({ probeMissed: false }),
  ),
  {
    kind: 'fair',
    name: 'the kubelet publishes the result of the probes',
    next: (s, workflow) =>
      runs(s) && !lacksSupervisor(s) && s.published !== probeResult(s)
        ? notifyWorkflow({ ...s, published: probeResult(s) }, workflow)
        : undefined,
  },
];

/** Transitions of the pod and of its node. */
export const POD_TRANSITIONS: readonly Transition[] = [
  ...START,
  ...EXITS,
  ...DELETION,
  ...TIME_AND_PROBES,
];
