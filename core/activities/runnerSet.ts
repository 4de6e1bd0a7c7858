/** What the workflows `runnerSet` and `setCommand` may ask of the world. */
import type {
  JobEvent,
  RunnerPhase,
  RunnerSetInput,
  RunnerEvent,
  SetCommandInput,
  SetRoutingInfo,
  SetPriority,
} from '../contract/index.ts';
import type { Scope } from '../domain/ciServer.ts';
import type { SetScheduleSpec, SetSpec } from '../input/runnerSet.ts';

export interface SetActivities {
  /** Checks the input of a command to a set; asks nobody. */
  admitSetCommand(input: { input: unknown }): Promise<SetCommandInput>;
  /** Checks and completes the declaration of a set; asks nobody. `continued`: of a set that runs, which is not to fail by it. */
  admitSet(input: { input: unknown; continued?: true }): Promise<AdmittedSet>;
  /** What time it is. */
  getTime(): Promise<Timestamped>;
  /** Which schedule holds now. */
  evaluateSchedules(input: {
    schedules: readonly SetScheduleSpec[];
  }): Promise<Timestamped & { schedule: ActiveSchedule }>;
  /** Starts runners' workflows. Those that Temporal refuses come back; everything else is tried again. */
  startRunners(
    input: StartRunnersInput,
  ): Promise<Timestamped & { rejected: string[]; message?: string }>;
  /** Asks runners to drain. @returns those that have ended already */
  drainRunners(input: {
    runners: readonly { workflowId: string; reason: string }[];
  }): Promise<Timestamped & { ended: string[] }>;
  /**
   * A page of the running runners of a set, by Temporal's visibility: which may be late, and proves no runner's absence. All at once may be more than the
   * 2 MiB that Temporal takes. `next`: `page` of the next one. Absent: it is the last.
   */
  listRunners(input: {
    set: string;
    page?: string;
  }): Promise<Timestamped & { runners: ListedRunner[]; next?: string }>;
  /** Which of these runners have ended, or were never there. */
  findEndedRunners(input: {
    workflowIds: readonly string[];
  }): Promise<Timestamped & { ended: string[] }>;
  /** Tells a set of its runner, together with what others tell it just then. Done when Temporal has it; a set that is gone is tolerated. A local activity. */
  notifySet(input: SetNotification): Promise<void>;
  /** Tells the set which jobs it has to serve, by the CI server's own list ({@link QueueCheckResult}). `supported`: the CI server has such a list. */
  checkQueuedJobs(input: CheckQueuedJobsInput): Promise<{ supported: boolean }>;
  /** Passes jobs on to other sets that have room for them, and hands on what was heard of such jobs since. */
  rerouteJobs(input: RerouteJobsInput): Promise<Timestamped & RerouteJobsResult>;
}

/** What a runner tells its set. */
export interface SetNotification {
  readonly set: string;
  readonly event: RunnerEvent;
}

/** A set goes by the time that its activities tell: see workflows/runnerSet/reconcile.ts. */
export interface Timestamped {
  /** When it was done (ms since the epoch). */
  readonly at: number;
}

export interface AdmittedSet {
  readonly spec: SetSpec;
  /** What was handed in. */
  readonly declaration: RunnerSetInput;
  readonly schedule: ActiveSchedule;
  /** When this was (ms since the epoch). */
  readonly at: number;
  /** Why the declaration of a set that runs is not accepted any more. Then the rest is what the set needs to see its runners out, and no more. */
  readonly rejection?: string;
}

export interface StartRunnersInput {
  readonly set: string;
  readonly templateHash: string;
  readonly ephemeral: boolean;
  readonly template: RunnerSetInput['template'];
  /** They tell the set when their jobs start. */
  readonly notifyBusy: boolean;
  /** They tell of their end before their pod is gone. */
  readonly notifyEndEarly: boolean;
  readonly priority: SetPriority;
  /** `trace`: `traceparent` of the job that it is started for. */
  readonly runners: readonly {
    readonly workflowId: string;
    readonly slot?: number;
    readonly traceparent?: string;
  }[];
}

export interface CheckQueuedJobsInput {
  readonly set: string;
  /** Where the sets are that the jobs may be for; the look itself is taken on the queue of the credential. */
  readonly taskQueue: string;
  readonly scope: Scope;
  readonly credential: string;
  readonly labels: readonly string[];
  /** When the set asked, by its own clock (ms since the epoch). */
  readonly requestedAt: number;
  /** What others have found out before may be so old, in ms. */
  readonly maxAgeMs: number;
  /** Jobs of which nothing was heard for long: asked for one by one where the list leaves something out. */
  readonly overdue: readonly { readonly key: string; readonly repository: string }[];
  /** Keys of the jobs that others have passed on to it. */
  readonly reroutedHere: readonly string[];
  /** Sets that it has passed jobs on to. */
  readonly reroutedTo: readonly string[];
}

/** News of a job, for the set that it was passed on to. */
export interface ForwardedJobEvent {
  /** Workflow id. */
  readonly to: string;
  readonly event: JobEvent;
}

export interface RerouteJobsInput {
  readonly set: string;
  readonly routing: SetRoutingInfo;
  /** Jobs that the set cannot serve. */
  readonly jobs: readonly {
    readonly key: string;
    readonly repository: string;
    readonly since: number;
  }[];
  /** The set ends: better a set without room than none. */
  readonly draining: boolean;
  readonly forwardedEvents: readonly ForwardedJobEvent[];
}

export interface RerouteJobsResult {
  /** Keys of the jobs, by the set that has them now. */
  readonly rerouted: readonly { readonly to: string; readonly keys: readonly string[] }[];
  /** Sets that could serve the jobs, with room or without. */
  readonly substitutes: number;
}

/** A runner as visibility lists it. */
export interface ListedRunner {
  readonly workflowId: string;
  readonly phase: RunnerPhase;
  readonly startedAt: number;
  readonly runnerName?: string;
  readonly templateHash?: string;
  readonly ephemeral?: boolean;
  readonly slot?: number;
}

/** The schedule that holds now, by its index, and when that has to be asked again (ms since the epoch). */
export interface ActiveSchedule {
  readonly index?: number;
  readonly until?: number;
}
