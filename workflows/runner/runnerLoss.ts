/** Whether a runner was taken away from outside, and whether a job was lost with it. Pure. */
import type { RunnerCause } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { takesJobs } from '../../core/domain/runnerKinds/runnerKinds.ts';
import type { EndFacts } from './endFacts.ts';
import { isJobLost } from './jobLoss.ts';

/** 128 + SIGKILL. */
const KILLED_EXIT_CODE = 137;

/** Whether a job was lost with the runner, or with the command that is its own job. */
export function hasLostJob(f: EndFacts, loss: RunnerCause | undefined): boolean {
  if (!takesJobs(f.kind)) return f.started;
  const { pod, ephemeral, started, busyAtEnd, jobSucceeded, jobInterrupted, removal } = f;
  const { stoppedByHoldfast, hadJob } = f;
  return isJobLost({
    ephemeral,
    // A runner that ran until its teardown had reported itself as idle.
    started: started && pod?.ended !== false,
    busyAtEnd,
    jobSucceeded,
    jobInterrupted,
    hadJob,
    cutLoose: f.removedWhileRunning === true,
    takenAway: loss !== undefined || stoppedByHoldfast,
    ...omitUndefined({ removal, exitCode: pod?.exit?.code, record: pod?.exit?.record?.job }),
  });
}

/**
 * Returns the cause if a job of the CI server was lost because its runner was taken away. Not if
 * someone ended the runner, the job ran out of memory, storage or time, or the runner never had a job.
 */
export function lostJobCause(f: EndFacts): RunnerCause | undefined {
  const { cancel, failure, kind, pod } = f;
  const wasEnded = cancel !== undefined && cancel.by !== 'drain' && cancel.mode !== 'drain';
  if (!takesJobs(kind) || wasEnded || failure !== undefined) return undefined;
  const isOwnEnd =
    pod?.exit?.oomKilled === true ||
    pod?.exit?.record?.reason === 'timeout' ||
    pod?.reason === 'DeadlineExceeded' ||
    // The kubelet evicts for a limit of the pod itself without this condition.
    (pod?.reason === 'Evicted' && pod.disruptionReason === undefined);
  const loss = lossOf(f);
  return isOwnEnd || loss === undefined || !hasLostJob(f, loss) ? undefined : loss;
}

/** Whether the runner's own process failed without having been asked to stop. */
export function hasCrashed(
  { pod, stoppedByHoldfast }: EndFacts,
  loss: RunnerCause | undefined,
): boolean {
  const exit = pod?.exit;
  return (
    exit !== undefined &&
    exit.code !== 0 &&
    exit.record?.job !== 'interrupted' &&
    loss === undefined &&
    !stoppedByHoldfast
  );
}

/**
 * Returns the cause if the runner was taken away from outside. Stops by Holdfast itself and
 * commands that had already ended are not losses.
 */
export function lossOf(f: EndFacts): RunnerCause | undefined {
  const { pod, stoppedByHoldfast } = f;
  return pod === undefined || stoppedByHoldfast || commandEndedByItself(f)
    ? undefined
    : lossCause(pod);
}

/**
 * Whether the command ended before anything asked it to stop, according to the supervisor's record.
 * What happened to its pod afterwards is not a loss. A node under memory pressure may kill the
 * process first and evict the pod afterwards, so exit code 137 does not count.
 */
function commandEndedByItself({ pod, kind }: EndFacts): boolean {
  const exit = pod?.exit;
  return (
    !takesJobs(kind) &&
    exit?.record !== undefined &&
    exit.record.reason === undefined &&
    exit.code !== KILLED_EXIT_CODE
  );
}

/**
 * Returns the cause if a runner was taken away from outside, or undefined if its container ended by
 * itself.
 */
export function lossCause(pod: PodSnapshot): RunnerCause | undefined {
  switch (pod.disruptionReason) {
    case undefined:
      break;
    case 'PreemptionByScheduler':
    case 'PreemptionByKubeScheduler':
      return 'preempted';
    case 'DeletionByTaintManager':
    case 'DeletionByPodGC':
      return 'node_lost';
    case 'TerminationByKubelet':
      // The kubelet uses this one reason for evictions, for preemption by critical pods and for
      // node shutdown.
      if (pod.reason === 'Preempting') return 'preempted';
      return pod.reason === 'Evicted' ? 'evicted' : 'node_shutdown';
    default:
      return 'evicted';
  }
  if (pod.reason === 'Evicted') return 'evicted';
  if (pod.reason === 'NodeLost') return 'node_lost';
  if (pod.reason === 'Shutdown' || pod.reason === 'NodeShutdown' || pod.reason === 'Terminated')
    return 'node_shutdown';
  if (pod.reason === 'Preempting') return 'preempted';
  if (pod.terminating || (pod.deleted && pod.exit === undefined)) return 'deleted_externally';
  return pod.ended && pod.exit === undefined ? 'agent_lost' : undefined;
}
