/**
 * The invariants of steps and states. Each check returns a message that describes the violation, or
 * `undefined`. Those of verdicts are in verdictInvariants.ts.
 */
import type { ObservedFacts, WaitKind } from '../../workflows/runner/unregisterFacts.ts';
import { hasJob, isCommand, isDone, isEphemeral, isLost, type State } from './state.ts';
import { checkVerdict } from './verdictInvariants.ts';
import type { WorkflowModel } from './workflowModel.ts';

/** Checks a step of the workflow. */
export function checkStep(
  before: State,
  after: State,
  workflow: WorkflowModel,
): string | undefined {
  if (!hasJob(before) || before.node !== 'ready') return undefined;
  const isDeleted =
    (before.deletedBy === 'none' && after.deletedBy === 'holdfast') ||
    (after.deleteRequested &&
      before.pod === 'running' &&
      after.pod === 'gone' &&
      before.stage !== 'completed');
  if (isDeleted && !canDeleteUnderJob(before, workflow))
    return `the pod was deleted while a job ran, without a stop request (${workflow.decision(before).action.reason})`;
  return checkDeadline(before, after, workflow);
}

/** Whether the workflow may delete the pod while its job runs. */
function canDeleteUnderJob(s: State, workflow: WorkflowModel): boolean {
  const { cancel } = workflow.knowledge(s);
  const isStopped = cancel?.mode === 'stop' || cancel?.mode === 'force';
  // If the kubelet publishes the probes later than the workflow waits, it cannot know of the job.
  return isStopped || s.probesLate || s.jobTimeUsed || (isCommand(s) && s.failure !== 'none');
}

/** Checks that a runner is stopped by the deadline of its running job, not by that of another. */
function checkDeadline(before: State, after: State, workflow: WorkflowModel): string | undefined {
  const { cancel: previous, runner } = workflow.knowledge(before);
  const isTimedOut = workflow.knowledge(after).cancel?.by === 'run_timeout';
  if (previous?.by === 'run_timeout' || !isTimedOut || after.jobTimeUsed) return undefined;
  // The keys of jobs begin with their ids: 1 and 2.
  const id = before.job === 'A running' ? '1' : '2';
  const isReported = runner.jobs.running?.key.startsWith(id) === true;
  return `a job ${isReported ? '' : 'without an event '}was stopped by the deadline of another job`;
}

/** Checks a state, independent of how it was reached. */
export function checkState(s: State, workflow: WorkflowModel): string | undefined {
  const { stage } = s;
  if (stage === 'completed') return checkEnd(s, workflow);
  // Before a replacement a cancellation can still come, which changes the verdict.
  if (stage === 'replacing')
    return workflow.knowledge(s).cancel === undefined ? checkEnd(s, workflow) : undefined;
  if (stage === 'starting') return checkStartup(s, workflow);
  return stage === 'waiting' || stage === 'removing registration'
    ? checkUnregistration(s, workflow)
    : undefined;
}

function checkUnregistration(s: State, workflow: WorkflowModel): string | undefined {
  const { action, facts, waitMs } = workflow.decision(s);
  if (action.kind === 'wait') {
    if (waitMs === undefined || !Number.isFinite(waitMs))
      return `a wait has no end: ${action.reason}`;
    if (facts.ended)
      return action.until === 'listRecheck'
        ? undefined
        : `the workflow waits although the runner has ended: ${action.reason}`;
    const message = checkWait(
      action.until,
      facts.observedActivity,
      workflow.progress(s).expiredWait,
    );
    if (message !== undefined) return message;
  }
  if (facts.ended || facts.stop === undefined) return undefined;
  if (action.kind === 'remove' && facts.stop === 'force')
    return 'the CI server is called first although the stop is forced';
  return action.kind === 'wait' && action.until !== 'terminated'
    ? `the workflow waits although a stop was accepted: ${action.reason}`
    : undefined;
}

/** Checks that a long wait has a reason: a running job, or a runner in an unknown state. */
function checkWait(
  until: WaitKind,
  observedActivity: ObservedFacts['observedActivity'],
  expiredWait: WaitKind | undefined,
): string | undefined {
  if (until === 'jobDeadline' && observedActivity !== 'busy')
    return 'the workflow waits for the end of a job that nothing reports';
  if (until !== 'settled') return undefined;
  if (observedActivity === 'idle')
    return 'the workflow waits for an idle runner without a registration';
  return expiredWait === 'settled' ? 'an expired wait is repeated' : undefined;
}

/** Checks that the workflow does not wait after a deadline of the start. */
function checkStartup(s: State, workflow: WorkflowModel): string | undefined {
  const { pod } = workflow.knowledge(s).runner;
  if (pod === undefined || pod.ended) return undefined;
  if (pod.startedAt !== undefined)
    return s.pastRegistrationDeadline && pod.online !== true
      ? 'the workflow waits after the registration deadline'
      : undefined;
  if (s.podAge === '10 m') return 'the workflow waits although the pod was pending for too long';
  return s.podAge === '5 m' && !pod.scheduled
    ? 'the workflow waits although the pod was unscheduled for too long'
    : undefined;
}

function checkEnd(s: State, workflow: WorkflowModel): string | undefined {
  if (s.registration === 'registered' && !s.handedOff && !isRemovedByServer(s))
    return 'the workflow ended with a registration that nothing removes';
  const isPodDeleted = s.deletedBy !== 'none' && !workflow.knowledge(s).runner.pod;
  if (s.pod !== 'gone' && s.pod !== 'none' && !isPodDeleted)
    return 'the workflow ended with a pod that nothing deletes';
  return s.staleProvisioning ? undefined : checkVerdict(s, workflow);
}

/** Whether the CI server removes the registration, as for an ephemeral runner after its job. */
const isRemovedByServer = (s: State): boolean =>
  isEphemeral(s) && (isDone(s) || (isLost(s) && s.exit === '0'));
