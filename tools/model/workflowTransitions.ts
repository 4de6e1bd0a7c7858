/**
 * Transitions of the workflow: the activities and waits of workflows/runner/, one by one. Between
 * two of them the workflow's own functions decide (see workflowTask.ts). A worker can die during
 * each activity: its effect remains, and the next attempt repeats it.
 */
import { BY_NEW_WORKER, STARTUP_TRANSITIONS } from './startupTransitions.ts';
import { initialState, isCommand, type State } from './state.ts';
import { step, type Transition } from './transition.ts';
import { UNREGISTRATION_TRANSITIONS } from './unregistrationTransitions.ts';
import type { WorkflowModel } from './workflowModel.ts';
import {
  deletePod,
  knowsPod,
  observePod,
  recordDeadlineJob,
  timeOutJob,
  withUpdate,
} from './workflowTask.ts';

const WAITING_FOR_END: readonly Transition[] = (['warm', 'cold'] as const).map((cache) => ({
  kind: cache === 'warm' ? 'fair' : 'fault',
  name: cache === 'warm' ? "the wait for the runner's end returns" : BY_NEW_WORKER,
  next(s, workflow) {
    const { runner } = workflow.knowledge(s);
    const isLostWithNode = s.node === 'unreachable' && s.deletedBy !== 'none';
    if (
      s.stage === 'completed' ||
      s.stage === 'replacing' ||
      runner.pod === undefined ||
      runner.ended !== undefined ||
      (s.pod !== 'ended' && s.pod !== 'gone' && !isLostWithNode)
    )
      return undefined;
    return recordDeadlineJob(s, observePod(s, workflow, 'ended', cache), workflow);
  },
}));

const SERVING: readonly Transition[] = [
  step('timeout', 'the job deadline has passed', 'serving', (s, workflow) => {
    const { busySince, podBusy } = workflow.knowledge(s).runner;
    if (busySince === undefined) return undefined;
    // The pod is read first: a job is not stopped because of an outdated view.
    const current =
      podBusy === true && !isCommand(s)
        ? recordDeadlineJob(s, observePod(s, workflow, 'observed', 'warm'), workflow)
        : s;
    return workflow.knowledge(current).runner.busySince === undefined
      ? current
      : timeOutJob(current, workflow);
  }),
  step('fault', 'the idle timeout has passed', 'serving', (s, workflow) =>
    workflow.knowledge(s).runner.busySince === undefined
      ? withUpdate(s, workflow, { kind: 'cancel', mode: 'drain', by: 'idle_timeout' })
      : undefined,
  ),
];

/** Returns the state with the final verdict. The model has two attempts: the second is the last. */
function complete(s: State, workflow: WorkflowModel): State {
  const completed: State = { ...s, stage: 'completed', verdict: workflow.finalVerdict(s) };
  return workflow.verdict(completed).kind === 'replace' &&
    workflow.knowledge(s).runner.identity.attempt === 1
    ? { ...completed, stage: 'replacing' }
    : completed;
}

const TEARING_DOWN: readonly Transition[] = [
  step('fair', 'pod and Secret are deleted', 'tearing down', (s, workflow) => {
    const deleted: State = s.deleteRequested ? s : { ...s, ...deletePod(s) };
    const isGone = deleted.pod === 'gone' || deleted.pod === 'none';
    // The workflow does not wait for a pod that it does not know.
    return isGone || !knowsPod(s, workflow)
      ? complete(deleted, workflow)
      : { ...deleted, stage: 'awaiting deletion' };
  }),
  step('fair', 'the pod is gone', 'awaiting deletion', (s, workflow) =>
    s.pod === 'gone' ? complete(s, workflow) : undefined,
  ),
  step(
    'timeout',
    'the grace period has passed: the pod is deleted by force',
    'awaiting deletion',
    (s, workflow) =>
      s.node === 'unreachable' && s.pod !== 'gone'
        ? complete({ ...s, ...deletePod(s, { force: true }) }, workflow)
        : undefined,
  ),
];

const REPLACING: readonly Transition[] = [
  step(
    'fair',
    'the runner is replaced, unless the workflow was cancelled',
    'replacing',
    (s, workflow) =>
      workflow.knowledge(s).cancel === undefined
        ? { ...initialState(s.setup), knowledge: workflow.replacement(s) }
        : { ...s, stage: 'completed', verdict: workflow.finalVerdict(s) },
  ),
];

/** All transitions of the workflow. */
export const WORKFLOW: readonly Transition[] = [
  ...STARTUP_TRANSITIONS,
  ...WAITING_FOR_END,
  ...SERVING,
  ...UNREGISTRATION_TRANSITIONS,
  ...TEARING_DOWN,
  ...REPLACING,
];
