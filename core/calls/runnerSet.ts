/** What the workflow `runnerSet` may ask of the world. */
import type { RunnerPhase, RunnerSetInput } from '../contract/index.ts';
import type { CiJobs, Scope } from '../domain/ciServer.ts';
import type { SetScheduleSpec, SetSpec } from '../input/runnerSet.ts';

export interface SetActivities {
  /** Checks and completes the declaration of a set; asks nobody. */
  admitSet(input: { input: unknown }): Promise<AdmittedSet>;
  /** What time it is. */
  clock(): Promise<Timed>;
  /** Which schedule holds now. */
  evaluateSchedules(input: { schedules: readonly SetScheduleSpec[] }): Promise<Timed & { schedule: ScheduleNow }>;
  /** Starts runners' workflows. Those that Temporal refuses come back; everything else is tried again. */
  startRunners(input: StartRunnersInput): Promise<Timed & { refused: string[]; why?: string }>;
  /** Asks runners to drain. @returns those that have ended already */
  drainRunners(input: { runners: readonly { workflowId: string; why: string }[] }): Promise<Timed & { gone: string[] }>;
  /** The running runners of a set, by Temporal's visibility: which may be late, and proves no runner's absence. */
  listRunners(input: { set: string }): Promise<Timed & { runners: ListedRunner[] }>;
  /** Which of these runners have ended, or were never there. */
  findGone(input: { workflowIds: readonly string[] }): Promise<Timed & { gone: string[] }>;
  /** The jobs that this set has to serve, by the CI server's own list. `null`: it has none. */
  lookForQueuedJobs(input: LookForJobsInput): Promise<CiJobs | null>;
}

/** A set goes by the time that its activities tell: see workflows/runnerSet/reconcile.ts. */
export interface Timed {
  /** When it was done (ms since the epoch). */
  readonly at: number;
}

export interface AdmittedSet {
  readonly spec: SetSpec;
  /** What was handed in. */
  readonly declaration: RunnerSetInput;
  readonly schedule: ScheduleNow;
  /** When this was (ms since the epoch). */
  readonly at: number;
}

export interface StartRunnersInput {
  readonly set: string;
  readonly generation: string;
  readonly ephemeral: boolean;
  readonly template: RunnerSetInput['template'];
  /** They tell the set when their jobs start. */
  readonly tellsBusy: boolean;
  readonly runners: readonly { readonly workflowId: string; readonly slot?: number }[];
}

export interface LookForJobsInput {
  readonly set: string;
  /** Where the sets are that the jobs may be for; the look itself is taken on the queue of the credential. */
  readonly taskQueue: string;
  readonly scope: Scope;
  readonly credential: string;
  readonly labels: readonly string[];
}

/** A runner as visibility lists it. */
export interface ListedRunner {
  readonly workflowId: string;
  readonly phase: RunnerPhase;
  readonly startedAt: number;
  readonly runnerName?: string;
  readonly generation?: string;
  readonly ephemeral?: boolean;
  readonly slot?: number;
}

/** The schedule that holds now, by its index, and when that has to be asked again (ms since the epoch). */
export interface ScheduleNow {
  readonly index?: number;
  readonly until?: number;
}
