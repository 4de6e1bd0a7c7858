/** What continue-as-new carries over of a set. */
import type { ScheduleNow } from '../../core/calls/index.ts';
import type { RunnerSetInput } from '../../core/contract/index.ts';
import type { SetSpec } from '../../core/input/runnerSet.ts';
import type { SetHealth } from './breaker.ts';
import type { CarriedJobs } from './jobs.ts';
import type { CarriedRunners } from './runners.ts';

/** What a set's state keeps besides runners and jobs; plain data. */
export interface SetFacts {
  spec: SetSpec;
  /** What the set was last told to be. Holds and pauses are an operator's as well, and stand below. */
  declaration: Omit<RunnerSetInput, 'holds' | 'paused'>;
  /** The time of the last change (ms since the epoch). */
  at: number;
  schedule: ScheduleNow;
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
  /** When `desired` last rose (ms since the epoch). */
  lastScaleUpAt: number;
  /** When the runners were last read from visibility. */
  listedAt?: number;
  /** When the last job event happened, by the CI server's clock (ms since the epoch). */
  jobHeardAt?: number;
  /** When the last look at the jobs of the CI server began, and the last that had an answer. */
  queueCheckAskedAt?: number;
  checkedAt?: number;
  /** Why the last look had no answer; `unsupported`: the CI server has no such look. */
  queueCheckFailure?: string;
}

export interface CarriedSet {
  readonly facts: SetFacts;
  readonly holds: readonly string[];
  readonly guards: readonly (readonly [string, number])[];
  readonly jobs: CarriedJobs;
  readonly runners: CarriedRunners;
}
