import type { RerunJob } from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import type { EndEvidence, RerunCandidate } from '../../core/domain/rerun.ts';

/** Runs jobs of a CI server again. Every method may throw {@link CiServerError}. */
export interface JobReruns {
  /**
   * Returns a job and the state of its workflow run.
   * @returns `undefined` if the server does not know the job
   */
  getJob(scope: Scope, job: RerunJob, signal?: AbortSignal): Promise<RerunCandidate | undefined>;
  /** Returns what the server reports on the end of the job. */
  endEvidence(scope: Scope, job: RerunJob, signal?: AbortSignal): Promise<EndEvidence>;
  /**
   * Returns whether this job is the only one in the latest attempt of its workflow run that has not
   * ended. `false` also if the list of jobs is incomplete.
   */
  isOnlyActiveJob(
    scope: Scope,
    job: RerunJob,
    run: Pick<RerunCandidate, 'runId' | 'attempt'>,
    signal?: AbortSignal,
  ): Promise<boolean>;
  /**
   * Ends a workflow run without waiting for its runners. A run that has ended stays as it is.
   * @throws CiServerError `rejected` if the server does not permit it
   */
  forceCancel(
    scope: Scope,
    job: RerunJob,
    run: Pick<RerunCandidate, 'runId'>,
    signal?: AbortSignal,
  ): Promise<void>;
  /**
   * Runs the job, and the jobs that depend on it, again.
   * @throws CiServerError `busy` if other jobs of its workflow run have not ended yet; `rejected` if
   * the server permits no rerun of this job
   */
  rerun(scope: Scope, job: RerunJob, signal?: AbortSignal): Promise<void>;
  /**
   * Returns the permissions that reruns need and the credential lacks, as far as the server reports them.
   */
  missingPermissions(signal?: AbortSignal): Promise<readonly string[]>;
}
