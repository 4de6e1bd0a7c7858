/** What happens at the CI server. */
import { hasJob, isCommand, isDone, isEphemeral, isLost, isStatic, type State } from './state.ts';
import { transition, type Transition } from './transition.ts';

/** Whether the runner process exists; it ends with its node. */
const isAlive = ({ pod, node }: State): boolean => pod === 'running' && node === 'ready';

function canTakeJob(s: State): boolean {
  return (
    isAlive(s) &&
    s.online &&
    s.registration === 'registered' &&
    s.deletedBy === 'none' &&
    !s.ciBusy &&
    !isCommand(s)
  );
}

const completed = (s: State, conclusion: State['conclusion']): Partial<State> => ({
  job: s.job === 'A running' ? 'A done' : 'B done',
  conclusion,
  jobJustStarted: false,
  justRegistered: false,
});

/** Transitions of jobs and registrations. */
export const CI_SERVER_TRANSITIONS: readonly Transition[] = [
  transition(
    'optional',
    'job A starts',
    (s) => canTakeJob(s) && s.job === 'none',
    () => ({ job: 'A running', ciBusy: true, jobJustStarted: true }),
  ),
  transition(
    'optional',
    'job B starts',
    (s) => canTakeJob(s) && s.job === 'A done' && isStatic(s),
    () => ({ job: 'B running', ciBusy: true, jobJustStarted: true }),
  ),
  transition(
    'fair',
    'the job succeeds',
    (s) => isAlive(s) && hasJob(s) && !isCommand(s),
    (s) => completed(s, 'success'),
  ),
  transition(
    'fault',
    'the job fails',
    (s) => isAlive(s) && hasJob(s) && !isCommand(s),
    (s) => completed(s, 'failure'),
  ),
  // GitHub releases a runner that died with its job after 10 to 15 minutes. It removes an ephemeral
  // runner after its job.
  transition(
    'fair',
    'the CI server registers the end of the job',
    (s) => s.ciBusy && (isDone(s) || isLost(s)),
    (s) => ({
      ciBusy: false,
      ...(isEphemeral(s) && s.registration === 'registered' ? { registration: 'removed' } : {}),
    }),
  ),
  transition(
    'fair',
    'a minute passes',
    (s) => s.jobJustStarted || s.justRegistered,
    () => ({ jobJustStarted: false, justRegistered: false }),
  ),
  transition(
    'fault',
    'a user removes the registration',
    (s) => s.registration === 'registered' && !s.ciBusy,
    () => ({ registration: 'removed' }),
  ),
];
