/** Activities of the `rerun` workflow. */
import type { RerunJob, RerunReason } from '../contract/index.ts';
import type { Scope } from '../domain/ciServer.ts';
import type { RerunSpec } from '../input/rerun.ts';

/**
 * Activities of the `rerun` workflow. All are idempotent: killing a worker between a side effect
 * and its completion does not change the final result. Each requires that the calling workflow is a
 * child of the lost runner.
 */
export interface RerunActivities {
  /**
   * Validates the input, without any request. A local activity.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitRerun(input: { input: unknown }): Promise<RerunSpec>;
  /** Finds the job that a runner was running. Returns nothing if the CI server lists none. */
  findLostJob(input: LostRunnerInput): Promise<{ readonly job?: RerunJob }>;
  /**
   * Waits until the job and its workflow run have ended, and decides whether the job runs again.
   * Each check is an attempt of its own.
   */
  awaitRerun(input: AwaitRerunInput): Promise<RerunPlan>;
  /**
   * Ends the workflow run of the job, if the CI server shows the runner as offline, nothing else of
   * the run is running or waiting, and no one has cancelled it.
   */
  forceCancelRun(input: RequestRerunInput): Promise<ForceCancelResult>;
  /** Requests the rerun, unless the CI server already has a later attempt of the workflow run. */
  requestRerun(input: RequestRerunInput): Promise<RerunPlan>;
}

/** A lost runner. */
export interface LostRunnerInput {
  readonly scope: Scope;
  readonly credential: string;
  readonly runnerName: string;
}

/** Input of {@link RerunActivities.awaitRerun}. */
export interface AwaitRerunInput extends LostRunnerInput {
  readonly job: RerunJob;
  readonly perRun: number;
  readonly recorded: boolean;
  /** Time at which the runner was asked to stop (ms since the epoch). */
  readonly stoppedAtMs?: number;
  /** Time at which the loss was reported (ms since the epoch). */
  readonly lostAtMs: number;
  /** Time after the loss at which the workflow run may be force-cancelled (ms). @default never */
  readonly forceCancelAfterMs?: number;
  /**
   * Whether {@link RerunActivities.forceCancelRun} may have ended the workflow run. The workflow
   * records it before the request is sent. @default false
   */
  readonly forceCancelled?: true;
}

/** Input of {@link RerunActivities.requestRerun}. */
export interface RequestRerunInput extends AwaitRerunInput {
  readonly perDay: number;
  readonly set?: string;
}

/** Result of a check or a request. */
export type RerunPlan =
  /** The job may run again, or is to run in this attempt of its workflow run. */
  | { readonly kind: 'rerun'; readonly attempt: number }
  /** The workflow run may be force-cancelled, so that the job can run again. */
  | { readonly kind: 'forceCancel' }
  | {
      readonly kind: 'skipped' | 'failed';
      readonly reason: RerunReason;
      readonly message?: string;
    };

/** Result of {@link RerunActivities.forceCancelRun}. */
export interface ForceCancelResult {
  /** Whether the request may have been sent, by any attempt of the activity. */
  readonly sent: boolean;
}
