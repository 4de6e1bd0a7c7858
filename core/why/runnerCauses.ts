/** Causes for which a runner waits. Pure. */
import type { RunnerPhase, RunnerStatus, WaitCause, WaitReason } from '../contract/index.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { RunnerFacts } from './facts.ts';
import { failureCauses, workflowCauses } from './workflowCauses.ts';

/** Cause of a runner's wait if no fact names another one. */
const PHASE_CAUSES: Readonly<Record<RunnerPhase, WaitCause>> = {
  Requested: 'not_admitted',
  Provisioning: 'pod_start',
  Registering: 'coming_online',
  Idle: 'idle',
  Busy: 'job_running',
  Draining: 'job_running',
  Unregistering: 'unregistering',
  TearingDown: 'tear_down',
  Gone: 'tear_down',
};
/** Activity that registers a runner. */
const PROVISION = 'provision';

/** Returns what a running runner waits for, the decisive cause first. */
export function runnerCauses(facts: RunnerFacts): WaitReason[] {
  if (facts.end !== undefined) return [];
  const stuck = workflowCauses(facts, facts.status !== undefined);
  const known = [...stuck, ...failureCauses(facts.pending), ...podCauses(facts)];
  if (known.length > 0) return known;
  const paced = pacedCauses(facts);
  return paced.length > 0 ? paced : phaseCauses(facts);
}

/** Returns why the container of the runner's pod does not start. */
function podCauses({ pod }: RunnerFacts): WaitReason[] {
  if (pod === undefined || pod.startedAt !== undefined) return [];
  const { name, scheduled, unschedulable, problem, createdAt } = pod;
  if (!scheduled && unschedulable !== undefined)
    return [
      {
        cause: 'unschedulable',
        text: `no node for pod ${name}: ${unschedulable}`,
        since: createdAt,
      },
    ];
  if (problem === undefined) return [];
  const isImage = problem.kind === 'image_pull' || problem.kind === 'invalid_image';
  return [
    {
      cause: isImage ? 'image_pull' : 'container_start',
      text: `pod ${name}: ${problem.message}`,
      since: problem.since,
    },
  ];
}

/** Returns that the registration waits for its turn at the pace of its credential. */
function pacedCauses({ pending, status }: RunnerFacts): WaitReason[] {
  const waiting = pending.find(
    ({ type, scheduled, attempt, taskQueue }) =>
      type === PROVISION && scheduled && attempt === 1 && taskQueue !== undefined,
  );
  if (waiting === undefined) return [];
  return [
    {
      cause: 'registration_pace',
      text: `its registration waits for its turn in task queue ${waiting.taskQueue}`,
      ...omitUndefined({ since: status?.phases.at(-1)?.at }),
    },
  ];
}

function phaseCauses({ status }: RunnerFacts): WaitReason[] {
  if (status === undefined) return [];
  const { phase, phases, waitingFor, waitingUntil, job } = status;
  const cause = isIdleDraining(status) ? 'unregistering' : PHASE_CAUSES[phase];
  const text = cause === 'job_running' && job !== undefined ? `job ${job}` : waitingFor;
  return [
    {
      cause,
      text: `${phase}: ${text ?? 'no wait'}`,
      ...omitUndefined({ since: phases.at(-1)?.at, until: waitingUntil }),
    },
  ];
}

/** Whether the runner is drained without a job. */
const isIdleDraining = ({ phase, phases, job }: RunnerStatus): boolean =>
  phase === 'Draining' &&
  job === undefined &&
  phases.findLast((each) => each.phase !== 'Draining')?.phase !== 'Busy';
