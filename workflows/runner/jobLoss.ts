/**
 * Decides whether a job was lost with its runner, in the same way for every kind of end of a
 * runner. Pure.
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
  /** Whether the runner was told to stop, or was taken away. */
  readonly takenAway: boolean;
  /** Whether the registration was removed while the runner was running. */
  readonly cutLoose: boolean;
  /** Whether a job was running at the end, according to the pod's probes or job events. */
  readonly busyAtEnd: boolean;
  /** Whether a job was observed to start. */
  readonly hadJob: boolean;
  /** Whether a job event reports that the job failed after the runner had been told to stop. */
  readonly jobInterrupted: boolean;
  /** Last response of the CI server to a removal. */
  readonly removal?: UnregistrationProgress['removal'];
}

/**
 * Whether a job was lost with the runner. The first row that matches decides:
 *
 * 1. The record says `running` or `interrupted`: lost.
 * 2. The record of an ephemeral runner says `completed`: not lost, because it has no other job.
 * 3. The runner exited with 0 without having been told to stop: not lost. An ephemeral runner
 *    ends like this after its job, and any runner whose registration was removed ends like this
 *    without a job, whatever is reported late.
 * 4. The pod, a job event or the CI server (422) reports that a job was running, or an event
 *    reports that it was interrupted and the record does not say `completed`: lost.
 * 5. An ephemeral runner exited with 0 after an observed job: not lost, because that job has
 *    completed.
 * 6. The registration of an ephemeral runner that started disappeared without any request of
 *    Holdfast: lost, because it had taken a job. Not if its record says `none`.
 */
export function isJobLost(f: LastJobFacts): boolean {
  if (f.record === 'running' || f.record === 'interrupted') return true;
  if (f.ephemeral && f.record === 'completed') return false;
  if ((f.ephemeral || f.cutLoose) && f.exitCode === 0 && !f.takenAway) return false;
  const interrupted = f.jobInterrupted && f.record !== 'completed';
  if (f.busyAtEnd || interrupted || f.removal === 'busy') return true;
  if (f.ephemeral && f.exitCode === 0 && f.hadJob) return false;
  return f.ephemeral && f.started && f.removal === 'absent' && f.record !== 'none';
}
