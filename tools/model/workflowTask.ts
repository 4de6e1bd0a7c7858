/**
 * The synchronous code of the workflow: what it does after an activity, a signal or a timer, until
 * it waits again. Decisions come from the workflow's own functions (see workflowModel.ts).
 */
import type { UnregistrationEvent } from '../../workflows/runner/unregisterFacts.ts';
import type { UnregistrationAction } from '../../workflows/runner/unregisterTable.ts';
import type { WorkerCache } from './podViews.ts';
import { hasJob, isCommand, type State } from './state.ts';
import type { Update } from './updates.ts';
import type { WorkflowModel } from './workflowModel.ts';

/** Applies an update to what the workflow knows. */
export const withUpdate = (s: State, workflow: WorkflowModel, update: Update): State => ({
  ...s,
  knowledge: workflow.update(s, update),
});

/** Passes the current view of the pod to the workflow, as a worker with this cache returns it. */
export const observePod = (
  s: State,
  workflow: WorkflowModel,
  kind: 'provisioned' | 'observed' | 'ended',
  cache: WorkerCache,
): State => withUpdate(s, workflow, { kind, view: workflow.view(s, cache) });

/** Whether the workflow knows of a pod. */
export const knowsPod = (s: State, workflow: WorkflowModel): boolean =>
  workflow.knowledge(s).runner.pod !== undefined;

/** Runs the workflow until it waits. Must follow every change of what it knows. */
export function runWorkflow(s: State, workflow: WorkflowModel): State {
  const { runner, cancel } = workflow.knowledge(s);
  switch (s.stage) {
    case 'starting':
      return runStartup(s, workflow);
    case 'checking online':
      return runner.ended !== undefined || cancel !== undefined || workflow.hadJob(s)
        ? runWorkflow({ ...s, stage: 'serving' }, workflow)
        : s;
    case 'serving':
      return runner.ended !== undefined || cancel !== undefined ? unregister(s, workflow) : s;
    case 'deleting pod': {
      const { action } = workflow.decision(s);
      return (action.kind === 'stopPod' || isUnlessBusy(action)) && workflow.factsChanged(s)
        ? applyEvent(s, workflow, { kind: 'changed' })
        : s;
    }
    case 'waiting':
      return workflow.factsChanged(s) ? applyEvent(s, workflow, { kind: 'changed' }) : s;
    case 'removing registration':
      return workflow.factsChanged(s) ? { ...s, cancellingRemoval: true } : s;
    case 'provisioning':
    case 'finding leftovers':
    case 'refreshing pod':
    case 'tearing down':
    case 'awaiting deletion':
    case 'replacing':
    case 'completed':
      return s;
  }
}

function runStartup(s: State, workflow: WorkflowModel): State {
  const { runner, cancel } = workflow.knowledge(s);
  if (cancel !== undefined || runner.pod === undefined) return unregister(s, workflow);
  const decision = workflow.startup(s);
  if (decision.kind === 'ended')
    return runWorkflow(
      { ...withUpdate(s, workflow, { kind: 'endedDuringStartup' }), stage: 'serving' },
      workflow,
    );
  if (decision.kind === 'online' || (decision.kind === 'running' && isCommand(s))) {
    const online = withUpdate(s, workflow, { kind: 'online' });
    return runWorkflow({ ...recordDeadlineJob(s, online, workflow), stage: 'serving' }, workflow);
  }
  if (decision.kind === 'running') return runWorkflow({ ...s, stage: 'checking online' }, workflow);
  return decision.kind === 'failed'
    ? unregister({ ...s, failure: decision.cause as State['failure'] }, workflow)
    : s;
}

/** Whether the deletion of the pod is cancelled if a job may have started. */
const isUnlessBusy = (action: UnregistrationAction): boolean =>
  action.kind === 'tearDown' && action.unlessBusy === true;

/** Records for which job the workflow has just set the job deadline. */
export function recordDeadlineJob(before: State, after: State, workflow: WorkflowModel): State {
  const { runner: previous } = workflow.knowledge(before);
  const { runner: current } = workflow.knowledge(after);
  const hasDeadline = current.jobDeadline !== undefined;
  // Job B always starts later than the cause of the runner's busy state, unless it is that cause.
  const renewed =
    current.busyJobKey !== previous.busyJobKey &&
    (previous.busyJobKey !== undefined || current.busyJobKey?.startsWith('2') === true);
  if (hasDeadline === (previous.jobDeadline !== undefined) && !renewed) return after;
  if (!hasDeadline) return { ...after, deadlineJob: 'none' };
  // A missed probe shows a runner as busy before its first job. If the job starts before the next
  // probe is published, that deadline is the job's, early by seconds: an event of a job that
  // started later renews it.
  if (after.job === 'none' || after.job === 'A running') return { ...after, deadlineJob: 'A' };
  return { ...after, deadlineJob: hasJob(after) ? 'B' : 'none' };
}

/** Starts the unregistration. */
export function unregister(s: State, workflow: WorkflowModel): State {
  return decide({ ...s, progress: workflow.initialProgress(s) }, workflow);
}

/** Applies an event to the unregistration, and takes the next decision. */
export function applyEvent(s: State, workflow: WorkflowModel, event: UnregistrationEvent): State {
  return decide(
    {
      ...s,
      progress: workflow.applyEvent(s, event),
      cancellingRemoval: false,
      removalRetried: false,
    },
    workflow,
  );
}

function decide(s: State, workflow: WorkflowModel): State {
  const decided = { ...s, decision: workflow.decide(s) };
  const { action, facts } = workflow.decision(decided);
  switch (action.kind) {
    case 'tearDown':
      return (action.unlessStarted ?? action.unlessBusy) === true
        ? { ...decided, stage: 'deleting pod' }
        : tearDown(decided, workflow);
    case 'handOff':
      return tearDown({ ...decided, handedOff: true }, workflow);
    case 'remove':
      return {
        ...decided,
        stage: 'removing registration',
        ...(facts.ended ? deletePod(decided) : {}),
      };
    case 'stopPod':
      return { ...decided, stage: 'deleting pod' };
    case 'refreshPod':
      return { ...decided, stage: 'refreshing pod' };
    case 'wait':
      return { ...decided, stage: 'waiting' };
  }
}

/** Ends the unregistration, which fixes the facts of the verdict. */
export function tearDown(s: State, workflow: WorkflowModel): State {
  const fixed: State = {
    ...withUpdate(s, workflow, { kind: 'unregistered' }),
    stage: 'tearing down',
  };
  return { ...fixed, verdict: workflow.verdictAfterUnregistration(fixed) };
}

/**
 * Returns the effect of a request to delete the pod and its Secret.
 * @param options.force - whether without a grace period
 */
export function deletePod(
  s: State,
  { force = false }: { readonly force?: boolean } = {},
): Partial<State> {
  const requested = { deleteRequested: true };
  if (s.pod === 'none' || s.pod === 'gone') return requested;
  if (!force) return s.deletedBy === 'none' ? { ...requested, deletedBy: 'holdfast' } : requested;
  const lostJob = s.job === 'A running' ? 'A lost' : 'B lost';
  return {
    ...requested,
    pod: 'gone',
    online: false,
    ...(hasJob(s) ? { job: lostJob, conclusion: 'failure' } : {}),
  };
}

/** Cancels the runner at its job deadline. Only the job of the deadline has had its full time. */
export const timeOutJob = (s: State, workflow: WorkflowModel): State => ({
  ...withUpdate(s, workflow, { kind: 'cancel', mode: 'stop', by: 'run_timeout' }),
  jobTimeUsed: !hasJob(s) || s.job.startsWith(s.deadlineJob),
});
