/**
 * Public names of the `rerun` workflow, which requests that the CI server run a job again after its
 * runner was taken away.
 */
import type { RunnerCause } from './runner.ts';

/** Workflow type that runs a lost job again. A runner starts it as its child. */
export const RERUN_WORKFLOW = 'rerun';

/** Returns the id of the workflow that reruns the job which this runner has lost. */
export function rerunWorkflowId(runnerName: string): string {
  return `rerun-${runnerName}`;
}

/** Which lost jobs run again; part of the input of a runner. */
export interface RerunPolicy {
  /**
   * Whether a job runs again if its runner was evicted or preempted, or its node or pod was lost.
   * Jobs that failed, were cancelled, timed out or ran out of memory never do. The credential in
   * the worker's settings must have `reruns: true`.
   * @default false
   */
  onLoss?: boolean;
  /**
   * Latest attempt of a workflow run whose lost jobs run again, 1 to 10. 1: a job that is lost in a
   * rerun stays lost.
   * @default 1
   */
  perRun?: number;
  /**
   * Maximum number of reruns per 24 hours for the set, or for the scope's runners without a set, 1
   * to 1000.
   * @default 20
   */
  perDay?: number;
  /**
   * Time after the loss at which the job's workflow run is force-cancelled, so that the job can run
   * again before GitHub has noticed the loss, about ten minutes later. Only if GitHub shows the
   * runner as offline, and no other job of the run is running or waiting. At most `10m`.
   * @default never
   */
  forceCancelAfter?: string;
}

/** Job at a CI server. */
export interface RerunJob {
  /** ID of the job at the CI server. */
  id: string;
  /** Repository as `owner/repo`. */
  repository: string;
}

/** Input of the `rerun` workflow. Only a runner's own workflow can start one that does anything. */
export interface RerunInput {
  /** Scope of the runner. Exactly one of `organization`, `repository` and `enterprise` is set. */
  organization?: string;
  repository?: string;
  enterprise?: string;
  /** Credential from the worker's settings. @default "default" */
  credential?: string;
  /** Set of the runner. */
  set?: string;
  /** Name of the lost runner at the CI server. */
  runnerName: string;
  cause: RunnerCause;
  /** Time at which the runner was asked to stop (ISO 8601). Absent if it was lost without notice. */
  stoppedAt?: string;
  /** Whether the supervisor has recorded that the stop interrupted the job. @default false */
  recorded?: true;
  /** Job that the runner ran. If absent, it is looked up by the runner's name. */
  job?: RerunJob;
  perRun: number;
  perDay: number;
  /** As in {@link RerunPolicy}. @default never */
  forceCancelAfter?: string;
}

/**
 * Reasons why a job was not rerun. `job_unknown`: no job of this runner was found. `succeeded`: it
 * succeeded all the same. `other_conclusion`: its conclusion, such as `timed_out`, is not that of a
 * lost job. `other_runner`: the CI server gave it to another runner. `failed_itself`: nothing shows
 * that its runner was the reason. `cancelled`: someone cancelled it. `already_rerun`: someone else
 * has rerun it. `per_run`, `per_day`: the maximum was reached. `not_concluded`: the CI server did not
 * end the job in time. `run_active`: other jobs of its workflow run did not end in time. `rejected`:
 * the CI server rejected the request. `unavailable`: it did not answer in time. `interrupted`: the
 * workflow was cancelled.
 */
export const RERUN_REASONS = [
  'job_unknown',
  'succeeded',
  'other_conclusion',
  'other_runner',
  'failed_itself',
  'cancelled',
  'already_rerun',
  'per_run',
  'per_day',
  'not_concluded',
  'run_active',
  'rejected',
  'unavailable',
  'interrupted',
] as const;
/** Reason why a job was not rerun. */
export type RerunReason = (typeof RERUN_REASONS)[number];

/** Result of the `rerun` workflow. */
export interface RerunResult {
  /**
   * `requested`: the CI server has accepted the rerun. `skipped`: the job must not run again.
   * `failed`: it should, and could not.
   */
  outcome: 'requested' | 'skipped' | 'failed';
  /** Absent if `requested`. */
  reason?: RerunReason;
  /** Result in one sentence. */
  message: string;
  /** The lost job, if it was found. */
  job?: RerunJob;
  /** Attempt of the workflow run in which the job runs again. */
  attempt?: number;
  /** Whether the workflow run was force-cancelled before, because of `forceCancelAfter`. */
  forceCancelled?: true;
}
