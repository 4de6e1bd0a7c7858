/**
 * Returns the number of a job's attempt, from 1. Gitea counts an attempt when a runner takes the
 * job: until then `run_attempt` is that of the attempt before.
 * @param job - `runnerId` is 0 or absent until a runner has taken the job
 */
export function attemptOf(job: {
  readonly runAttempt: number;
  readonly runnerId?: number | null | undefined;
}): number {
  return Math.max(1, job.runnerId ? job.runAttempt : job.runAttempt + 1);
}
