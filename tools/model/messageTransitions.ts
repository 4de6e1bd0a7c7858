/** Messages to the workflow: job events, signals of the watcher, and cancellations. */
import { hasJob, isCommand, type State } from './state.ts';
import type { Transition } from './transition.ts';
import { notifyWorkflow } from './watcher.ts';

/** Whether events still matter. After the verdict only a cancellation before a replacement does. */
const acceptsEvents = (s: State): boolean => s.stage !== 'completed' && s.stage !== 'replacing';

const hasStarted = ({ job }: State, which: 'A' | 'B'): boolean =>
  job !== 'none' && (which === 'A' || job.startsWith('B'));

/** Whether the job has ended and the CI server knows it. */
function hasCompleted(s: State, which: 'A' | 'B'): boolean {
  return (
    (which === 'A' && s.job.startsWith('B')) || (s.job.startsWith(which) && !hasJob(s) && !s.ciBusy)
  );
}

function jobEvent(
  name: string,
  guard: (s: State) => boolean,
  action: 'in_progress' | 'completed',
  job: 'A' | 'B',
): Transition {
  return {
    kind: 'optional',
    name,
    next(s, workflow) {
      if (!guard(s) || !acceptsEvents(s) || isCommand(s)) return undefined;
      // After the start of job B the model does not store the conclusion of job A.
      const knowledge = workflow.update(s, {
        kind: 'job',
        action,
        job,
        conclusion: s.job.startsWith(job) ? s.conclusion : 'success',
      });
      return { ...s, knowledge };
    },
  };
}

function cancellation(
  name: string,
  mode: 'drain' | 'stop' | 'force',
  by: 'drain' | 'cancelled',
  guard: (s: State) => boolean = () => true,
): Transition {
  return {
    kind: 'fault',
    name: `${name} arrives`,
    next: (s, workflow) =>
      s.stage !== 'completed' && guard(s)
        ? { ...s, knowledge: workflow.update(s, { kind: 'cancel', mode, by }) }
        : undefined,
  };
}

/** Transitions of messages. */
export const MESSAGE_TRANSITIONS: readonly Transition[] = [
  ...(['A', 'B'] as const).flatMap((job) => [
    jobEvent(
      `the event "job ${job} in progress" arrives`,
      (s) => s.job === `${job} running` || hasStarted(s, job),
      'in_progress',
      job,
    ),
    jobEvent(
      `the event "job ${job} completed" arrives`,
      (s) => hasCompleted(s, job),
      'completed',
      job,
    ),
  ]),
  {
    kind: 'fault',
    name: 'another worker takes over the watch',
    next: (s, workflow) =>
      s.watcherView === 'nothing'
        ? undefined
        : notifyWorkflow({ ...s, watcherView: 'nothing' }, workflow),
  },
  {
    kind: 'optional',
    name: 'the podState signal arrives',
    next(s, workflow) {
      if (!acceptsEvents(s) || s.signal === 'none') return undefined;
      const knowledge = workflow.update(s, { kind: 'podState', state: s.signal });
      return notifyWorkflow({ ...s, signal: 'none', knowledge }, workflow);
    },
  },
  cancellation(
    'the update drain',
    'drain',
    'drain',
    (s) => s.stage !== 'tearing down' && s.stage !== 'awaiting deletion' && s.stage !== 'replacing',
  ),
  cancellation('a cancellation with mode drain', 'drain', 'cancelled'),
  cancellation('a cancellation with mode stop', 'stop', 'cancelled'),
  cancellation('a cancellation with mode force', 'force', 'cancelled'),
];
