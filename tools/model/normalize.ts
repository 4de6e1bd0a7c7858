/** Removes differences between states that have no effect any more, which keeps states few. */
import { hasJob, isLost, isStatic, type State } from './state.ts';
import type { WorkflowModel } from './workflowModel.ts';

/** Returns the state with the initial value in each field that has no effect any more. */
export function normalize(s: State, workflow: WorkflowModel): State {
  const { pod, stage, registration } = s;
  const { runner, cancel } = workflow.knowledge(s);
  const runs = pod === 'running';
  const isStarting =
    stage === 'provisioning' ||
    stage === 'finding leftovers' ||
    stage === 'starting' ||
    stage === 'checking online';
  const hasVerdict = stage === 'replacing' || stage === 'completed';
  const isUnregistered = stage === 'tearing down' || stage === 'awaiting deletion' || hasVerdict;
  return {
    ...s,
    problem: pod === 'pending' ? s.problem : 'none',
    probeMissed: runs && s.probeMissed,
    online: runs && s.online,
    published: runs ? s.published : 'down',
    watcherView: runs ? s.watcherView : 'nothing',
    podAge: isStarting && (pod === 'none' || pod === 'pending') ? s.podAge : 'new',
    pastRegistrationDeadline:
      s.pastRegistrationDeadline &&
      (isStarting || s.deletedBy !== 'none' || (isStatic(s) && registration === 'none')),
    jobJustStarted: s.jobJustStarted && registration === 'registered',
    justRegistered: s.justRegistered && registration === 'registered' && runner.id === undefined,
    created: isStarting || s.staleProvisioning ? s.created : 'nothing',
    // Only a difference between the job of the deadline and the running job matters.
    deadlineJob:
      runner.jobDeadline === undefined ||
      isUnregistered ||
      (hasJob(s) && !s.job.startsWith(s.deadlineJob)) ||
      (cancel !== undefined && cancel.mode !== 'drain')
        ? 'none'
        : s.deadlineJob,
    jobTimeUsed: s.jobTimeUsed && !isUnregistered,
    probesLate: s.probesLate && stage !== 'replacing' && (hasJob(s) || isLost(s)),
    decision: stage === 'awaiting deletion' || hasVerdict ? 0 : s.decision,
    progress: isUnregistered && !hasVerdict ? workflow.finalProgress(s) : s.progress,
  };
}
