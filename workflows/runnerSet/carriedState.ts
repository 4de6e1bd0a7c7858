/** State of a set that continue-as-new carries over. */
import type { ActiveSchedule } from '../../core/activities/index.ts';
import type { RunnerSetInput, RunnerVersionStatus } from '../../core/contract/index.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import type { ClusterLimit } from './capacity.ts';
import type { SetHealth } from './breaker.ts';
import type { RunnerTime } from './limits.ts';
import type { ScaleSetFacts } from './scaleSetDemand.ts';
import type { Peak } from './peaks.ts';
import type { ForwardedJobEvent } from '../../core/activities/index.ts';
import type { CarriedJobs } from './carriedJobs.ts';
import type { CarriedRunners } from './carriedRunners.ts';

/** State of a set other than its runners and jobs. Plain data. */
export interface SetStateData {
  spec: SetSpec;
  /**
   * Last declaration of the set. Holds and pauses are stored separately, because operators change
   * them as well.
   */
  declaration: Omit<RunnerSetInput, 'holds' | 'paused'>;
  /** Time of the last change (ms since the epoch). */
  at: number;
  schedule: ActiveSchedule;
  /** Time of the next evaluation of the schedules (ms since the epoch). Absent if there is none. */
  rescheduleAt?: number;
  health: SetHealth;
  /** Reason of an operator for pausing the set. */
  pausedBy?: string;
  /** Reason for ending the set. It ends after its runners have ended. */
  ending?: string;
  /** Whether the end was requested by a Temporal cancellation. */
  cancelled?: true;
  desired: number;
  /**
   * Number of jobs that require runners (`asked`), and number of these that are queued
   * (`demandedQueued`). Jobs held by a limit are not included.
   */
  asked: number;
  demandedQueued: number;
  /** Whether the set has as many jobs as it can serve. */
  full: boolean;
  /** Time at which the set publishes that it has capacity again (ms since the epoch). */
  availableAt?: number;
  /** Number of jobs and runners held by limits. */
  limited: { jobs: number; runners: number };
  /** Run time of the runners, if there is a limit for it. */
  time?: RunnerTime;
  /**
   * Time before which the set does not look for another set for its jobs, because none had room (ms
   * since the epoch).
   */
  rerouteAt?: number;
  /** Numbers of runners above `desired` that were wanted within `scaleDownDelay`. */
  peaks: readonly Peak[];
  /**
   * Time of the last list of the runners from visibility (ms since the epoch). 0 if another list is
   * needed at once. Absent before the first one.
   */
  listedAt?: number;
  /**
   * Time at which the last list was requested (ms since the epoch). Absent if what it shows is not
   * enough.
   */
  listStartedAt?: number;
  /** Demand that GitHub has reported for the set's scale set. Absent before its first statistics. */
  scaleSet?: ScaleSetFacts;
  /** Limit that the cluster imposes. Absent: none is known. */
  clusterLimit?: ClusterLimit;
  /** Start of the last observation of the cluster (ms since the epoch). */
  observedAt?: number;
  /** Number of runners with a node at the last observation. */
  placed?: number;
  /** Time at which the listener was last started or found running (ms since the epoch). */
  listenerAt?: number;
  /** Version of the template's runners, from the daily check of a worker. */
  runnerVersion?: RunnerVersionStatus;
  /** Time of the last job event, by the CI server's clock (ms since the epoch). */
  lastJobEventAt?: number;
  /**
   * Start of the last check of the CI server's jobs (`queueCheckStartedAt`), and of the last check
   * with a result (`checkedAt`), in ms since the epoch.
   */
  queueCheckStartedAt?: number;
  checkedAt?: number;
  /**
   * Reason why the last check had no result. `unsupported`: the CI server does not support such a
   * check.
   */
  queueCheckFailure?: string;
  /** Reason why the last check was incomplete. Absent if it was complete, or there was none. */
  incomplete?: {
    /** Time since which no check was complete (ms since the epoch). */
    readonly since: number;
    /** Time at which the request budget is renewed, if that was the cause (ms since the epoch). */
    readonly budgetUntil?: number;
    /** Whether the CI server has no job list for the scope. */
    readonly unsupported?: true;
  };
}

/** Facts that each run takes from its own admission. */
export type AdmittedFacts = 'spec' | 'declaration' | 'schedule' | 'rescheduleAt';

/**
 * State of a set that continue-as-new carries over: counters and received events.
 *
 * It is the second argument of the workflow, which anyone who may start a workflow can write as
 * well. So it does not define what the set is: that is in the input, which each run admits.
 */
export interface CarriedSetState {
  readonly facts: Omit<SetStateData, AdmittedFacts>;
  /** Suffixes of workflow ids, each with a time minus that of the previous one (ms). */
  readonly guards: CarriedRunners['ended'];
  /** Events of rerouted jobs, for the sets that have these jobs now. */
  readonly forwardedEvents: readonly ForwardedJobEvent[];
  readonly jobs: CarriedJobs;
  readonly runners: CarriedRunners;
}

/** Complete state that continue-as-new carries over. */
export interface CarriedSet extends CarriedSetState {
  /** IDs of the last executed commands. */
  readonly commandsDone: readonly string[];
}
