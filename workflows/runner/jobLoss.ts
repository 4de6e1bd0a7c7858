/** Whether a runner's end took a job with it: one answer for every way in which a runner ends. Pure. */
import type { SupervisorRecord } from '../../core/domain/pod.ts';
import type { UnregistrationProgress } from './unregisterFacts.ts';

/** What is known of the last job of a runner that has ended. */
export interface LastJobFacts {
  readonly ephemeral: boolean;
  /** Whether the container was seen to start, and has ended. */
  readonly started: boolean;
  /** Exit code of the container, if known. */
  readonly exitCode?: number;
  /** What the supervisor recorded of the last job. */
  readonly record?: SupervisorRecord['job'];
  /** Whether something told the runner to go, or took it away. */
  readonly takenAway: boolean;
  /** Whether its registration was removed while it lived. */
  readonly cutLoose: boolean;
  /** Whether a job was running at the end, by the pod's probes or by job events. */
  readonly busyAtEnd: boolean;
  /** Whether a job was seen to start. */
  readonly hadJob: boolean;
  /** Whether a job event says that the job failed after the runner had been told to go. */
  readonly jobInterrupted: boolean;
  /** The CI server's last answer to a removal. */
  readonly removal?: UnregistrationProgress['removal'];
}

/**
 * Whether a job was lost with the runner. The rows, of which the first that matches decides:
 *
 * 1. The record says `running` or `interrupted`: lost.
 * 2. The record of an ephemeral runner says `completed`: it has no other job to lose.
 * 3. It exited with 0, left alone: that is how an ephemeral runner ends after its job, and any whose registration was
 *    removed ends without one, whatever is told late.
 * 4. The pod, a job event or the CI server (422) says that a job was running, or an event that it was interrupted: lost.
 * 5. An ephemeral runner exited with 0 after a job that was seen: that job is over.
 * 6. The registration of an ephemeral runner that started is gone, by no try of ours: it had taken a job. Not if its
 *    record says `none`.
 */
export function isJobLost(f: LastJobFacts): boolean {
  if (f.record === 'running' || f.record === 'interrupted') return true;
  if (f.ephemeral && f.record === 'completed') return false;
  if ((f.ephemeral || f.cutLoose) && f.exitCode === 0 && !f.takenAway) return false;
  if (f.busyAtEnd || f.jobInterrupted || f.removal === 'busy') return true;
  if (f.ephemeral && f.exitCode === 0 && f.hadJob) return false;
  return f.ephemeral && f.started && f.removal === 'absent' && f.record !== 'none';
}
