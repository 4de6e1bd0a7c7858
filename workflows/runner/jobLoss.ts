/**
 * Decides whether a job was lost with its runner. The rules are the same for every kind of end.
 * Pure.
 */
import type { SupervisorRecord } from '../../core/domain/pod.ts';
import type { UnregistrationProgress } from './unregisterFacts.ts';

/** Facts about the last job of a runner that has ended. */
export interface LastJobFacts {
  readonly ephemeral: boolean;
  /** Whether the container was observed to start, and has ended. */
  readonly started: boolean;
  /** Exit code of the container, if known. */
  readonly exitCode?: number;
  /** State of the last job in the supervisor's record. */
  readonly record?: SupervisorRecord['job'];
  /** Whether the runner received a request to stop, or its pod was taken away. */
  readonly takenAway: boolean;
  /** Whether the registration was removed while the runner was running. */
  readonly cutLoose: boolean;
  /** Whether a job was running at the end, according to the pod's probes or job events. */
  readonly busyAtEnd: boolean;
  /** Whether a job was observed to start. */
  readonly hadJob: boolean;
  /** Whether a job event reports that the job of an ephemeral runner succeeded. */
  readonly jobSucceeded: boolean;
  /** Whether a job event reports that the job failed after the request to stop. */
  readonly jobInterrupted: boolean;
  /** Last response of the CI server to a removal. */
  readonly removal?: UnregistrationProgress['removal'];
}

/**
 * Returns whether a job was lost with the runner. The first row that matches decides:
 *
 * 1. The record is `running` or `interrupted`: lost.
 * 2. The record of an ephemeral runner is `completed`, or an event reports its job's success: not
 *    lost, because it has no other job.
 * 3. The runner exited with 0 without a request to stop: not lost. An ephemeral runner ends like
 *    this after its job, and any runner whose registration was removed ends like this without a job.
 *    Later reports change nothing.
 * 4. The pod, a job event or the CI server (422) reports that a job was running, or an event
 *    reports that it was interrupted and the record is not `completed`: lost.
 * 5. An ephemeral runner exited with 0 after an observed job: not lost, because that job has
 *    completed.
 * 6. The registration of an ephemeral runner that started disappeared without any request of
 *    Holdfast: lost, because it had taken a job. Not lost if its record is `none`.
 */
export function isJobLost(f: LastJobFacts): boolean {
  if (f.record === 'running' || f.record === 'interrupted') return true;
  if (f.ephemeral && (f.record === 'completed' || f.jobSucceeded)) return false;
  if ((f.ephemeral || f.cutLoose) && f.exitCode === 0 && !f.takenAway) return false;
  const interrupted = f.jobInterrupted && f.record !== 'completed';
  if (f.busyAtEnd || interrupted || f.removal === 'busy') return true;
  if (f.ephemeral && f.exitCode === 0 && f.hadJob) return false;
  return f.ephemeral && f.started && f.removal === 'absent' && f.record !== 'none';
}
