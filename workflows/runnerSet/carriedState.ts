/** What continue-as-new carries over of a set. */
import type { ActiveSchedule } from '../../core/activities/index.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import type { SetHealth } from './breaker.ts';
import type { RunnerTime } from './limits.ts';
import type { Peak } from './peaks.ts';
import type { ForwardedJobEvent } from '../../core/activities/index.ts';
import type { CarriedJobs } from './carriedJobs.ts';
import type { CarriedRunners } from './carriedRunners.ts';

/** What a set's state keeps besides runners and jobs; plain data. */
export interface SetStateData {
  spec: SetSpec;
  /** What the set was last told to be. Holds and pauses are an operator's as well, and stand below. */
  declaration: Omit<RunnerSetInput, 'holds' | 'paused'>;
  /** The time of the last change (ms since the epoch). */
  at: number;
  schedule: ActiveSchedule;
  /** When to ask again which schedule holds (ms since the epoch); absent: never. */
  rescheduleAt?: number;
  health: SetHealth;
  /** An operator's reason to start no runner. */
  pausedBy?: string;
  /** The set ends when its runners have. */
  ending?: string;
  /** By plain cancellation. */
  cancelled?: true;
  desired: number;
  /** Jobs that asked for runners, and of them those that wait; without those that a limit holds back. */
  asked: number;
  demandedQueued: number;
  /** It has as many jobs as it can serve. */
  full: boolean;
  /** When it says that it has room again (ms since the epoch). */
  availableAt?: number;
  /** Jobs and runners that limits hold back. */
  limited: { jobs: number; runners: number };
  /** Its runners' time; with a limit of it. */
  time?: RunnerTime;
  /** No other set had room for its jobs: not before this time is one looked for again (ms since the epoch). */
  rerouteAt?: number;
  /** Numbers of runners above `desired` that were wanted within `scaleDownDelay`. */
  peaks: readonly Peak[];
  /** When the runners were last read from visibility. */
  listedAt?: number;
  /** When the last job event happened, by the CI server's clock (ms since the epoch). */
  lastJobEventAt?: number;
  /** When the last look at the jobs of the CI server began, and the last that had an answer. */
  queueCheckStartedAt?: number;
  checkedAt?: number;
  /** Why the last look had no answer; `unsupported`: the CI server has no such look. */
  queueCheckFailure?: string;
  /** Why the last check was incomplete. Absent: it was complete, or there was none. */
  incomplete?: {
    /** Time since which no check was complete (ms since the epoch). */
    readonly since: number;
    /** Time at which the request budget is renewed, if that was the cause (ms since the epoch). */
    readonly budgetUntil?: number;
    /** The CI server has no job list for the scope. */
    readonly unsupported?: true;
  };
}

/** Facts that each run has from its own admission, and those that an operator has said, which are in the declaration. */
export type AdmittedFacts = 'spec' | 'declaration' | 'schedule' | 'rescheduleAt';

/**
 * What continue-as-new carries over of a set's state: what was counted and heard. It is the second argument of the workflow, which whoever may
 * start one can write as well, so nothing of it says what the set is: that is in its input, which each run admits.
 */
export interface CarriedSetState {
  readonly facts: Omit<SetStateData, AdmittedFacts>;
  /** Suffixes of workflow ids, each with a time minus that of the one before. */
  readonly guards: CarriedRunners['ended'];
  /** News of jobs that were passed on, for the sets that have them. */
  readonly forwardedEvents: readonly ForwardedJobEvent[];
  readonly jobs: CarriedJobs;
  readonly runners: CarriedRunners;
}

/** All that continue-as-new carries over. */
export interface CarriedSet extends CarriedSetState {
  /** IDs of the commands that were carried out last. */
  readonly commandsDone: readonly string[];
}
