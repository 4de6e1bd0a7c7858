/** Activities of the workflows `runnerSet` and `setCommand`. */
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

/** Activities of the workflows `runnerSet` and `setCommand`. */
export interface SetActivities {
  /**
   * Validates a command to a set, without any request.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitSetCommand(input: { input: unknown }): Promise<SetCommandInput>;
  /**
   * Validates the declaration of a set and fills in the defaults, without any request. With
   * `continued`, for a running set, an invalid declaration is reported in `rejection`.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitSet(input: { input: unknown; continued?: true }): Promise<SetAdmission>;
  /** Returns the current time. */
  getTime(): Promise<Timestamped>;
  /** Returns the schedule that applies now. */
  evaluateSchedules(input: {
    schedules: readonly SetScheduleSpec[];
  }): Promise<Timestamped & { schedule: ActiveSchedule }>;
  /**
   * Starts runner workflows. All failures other than a rejection by Temporal are retried.
   * @returns in `rejected` the workflow ids that Temporal rejected
   */
  startRunners(
    input: StartRunnersInput,
  ): Promise<Timestamped & { rejected: string[]; message?: string }>;
  /** Sends drain requests to runners. @returns in `ended` the runners that had ended already */
  drainRunners(input: {
    runners: readonly { workflowId: string; reason: string }[];
  }): Promise<Timestamped & { ended: string[] }>;
  /**
   * Lists the set's running runners from Temporal's visibility, without those that are as `known`
   * says. Visibility may lag, so it does not prove that a runner is absent.
   */
  listRunners(input: ListRunnersInput): Promise<Timestamped & RunnerList>;
  /** Returns which of these runners have ended or never existed. */
  findEndedRunners(input: {
    workflowIds: readonly string[];
  }): Promise<Timestamped & { ended: string[] }>;
  /**
   * Sends a runner event to its set, batched with those of other runners. It completes when
   * Temporal has accepted the signal, and ignores a set that no longer exists. A local activity.
   */
  notifySet(input: SetNotification): Promise<void>;
  /**
   * Checks the CI server's job list and sends the jobs that the set must serve as a signal
   * (`QueueCheckResult`).
   * @returns in `supported` whether the CI server has such a list
   */
  checkQueuedJobs(input: CheckQueuedJobsInput): Promise<{ supported: boolean }>;
  /**
   * Reroutes jobs to other sets that have room for them, and forwards later events of rerouted
   * jobs.
   */
  rerouteJobs(input: RerouteJobsInput): Promise<Timestamped & RerouteJobsResult>;
  /** Reads from the cluster which runners of the set have a node. */
  observeCapacity(input: ObserveCapacityInput): Promise<CapacityObservation>;
}

/** Input of {@link SetActivities.observeCapacity}. */
export interface ObserveCapacityInput {
  readonly set: string;
  /** Namespace of the runners. @default that of the worker */
  readonly namespace?: string;
  /** Workflow IDs of the starting runners that were not seen with a node. */
  readonly runners: readonly string[];
}

/** Result of {@link SetActivities.observeCapacity}. */
export interface CapacityObservation extends Timestamped {
  /** Number of pods of the set that have a node and have not ended. */
  readonly placed: number;
  /** Requested runners without a node. `reason` is absent if it is not known why. */
  readonly unplaced: readonly { readonly workflowId: string; readonly reason?: string }[];
}

/** Event from a runner to its set. */
export interface SetNotification {
  /** Name of the set. */
  readonly set: string;
  readonly event: RunnerEvent;
  /** Whether it may wait for other events of the set. @default only `online` may */
  readonly mayWait?: true;
}

/**
 * Result with a time. A set uses the times of its activities as its clock: see
 * workflows/runnerSet/reconcile.ts.
 */
export interface Timestamped {
  /** Time of completion (ms since the epoch). */
  readonly at: number;
}

/** Validated set. */
export interface AdmittedSet extends Omit<SetAdmission, 'spec'> {
  readonly spec: SetSpec;
  /** Declaration as it was submitted. */
  readonly declaration: RunnerSetInput;
}

/** Result of the validation of a set, without the template, which the workflow has. */
export interface SetAdmission {
  readonly spec: Omit<SetSpec, 'template'>;
  /** Schedule that applies at the time of the validation. */
  readonly schedule: ActiveSchedule;
  /** Time of the validation (ms since the epoch). */
  readonly at: number;
  /**
   * Reason why the declaration of a running set is not valid anymore. The other fields are then
   * only those needed to drain its runners.
   */
  readonly rejection?: string;
}

/** Input of {@link SetActivities.startRunners}. */
export interface StartRunnersInput {
  readonly set: string;
  readonly templateHash: string;
  readonly ephemeral: boolean;
  readonly template: RunnerSetInput['template'];
  /** Whether the runners notify the set when their jobs start. */
  readonly notifyBusy: boolean;
  /** Whether the runners notify the set of their end before their pods are deleted. */
  readonly notifyEndEarly: boolean;
  /** Whether the ends of the runners may reach the set a moment later. @default false */
  readonly endMayWait?: boolean;
  readonly priority: SetPriority;
  /** Runners to start. `traceparent`: that of the job that the runner is started for. */
  readonly runners: readonly {
    readonly workflowId: string;
    readonly slot?: number;
    readonly traceparent?: string;
  }[];
}

/** Input of {@link SetActivities.listRunners}. */
export interface ListRunnersInput {
  readonly set: string;
  /** Runners that the set knows, each as core/domain/knownRunner.ts describes it. @default none */
  readonly known?: readonly string[];
  /** Where the previous part of the list ended. @default the beginning */
  readonly page?: string;
}

/**
 * A part of a list of runners. There are parts because a list of many changed runners may exceed
 * Temporal's limit of 2 MiB.
 */
export interface RunnerList {
  /** Runners that are not as `known` says. */
  readonly runners: ListedRunner[];
  /** Indexes in `known` of the runners that are not in this part, or not as `known` says. */
  readonly unconfirmed: number[];
  /** Where the next part begins. Absent: this is the last one. */
  readonly next?: string;
}

/** Input of {@link SetActivities.checkQueuedJobs}. */
export interface CheckQueuedJobsInput {
  readonly set: string;
  /**
   * Task queue of the sets that the jobs may be for. The check itself runs on the task queue of the
   * credential.
   */
  readonly taskQueue: string;
  readonly scope: Scope;
  readonly credential: string;
  readonly labels: readonly string[];
  /** Time of the request, by the set's clock (ms since the epoch). */
  readonly requestedAt: number;
  /** Maximum age of an earlier result that may be reused (ms). */
  readonly maxAgeMs: number;
  /**
   * Jobs without an event for a long time. They are checked individually if the list is not
   * complete.
   */
  readonly overdue: readonly { readonly key: string; readonly repository: string }[];
  /** Keys of the jobs that other sets have rerouted to this one. */
  readonly reroutedHere: readonly string[];
  /** Sets that this one has rerouted jobs to. */
  readonly reroutedTo: readonly string[];
}

/** Job event to forward to the set that the job was rerouted to. */
export interface ForwardedJobEvent {
  /** Workflow id of that set. */
  readonly to: string;
  readonly event: JobEvent;
}

/** Input of {@link SetActivities.rerouteJobs}. */
export interface RerouteJobsInput {
  readonly set: string;
  /**
   * Labels, runner group and scope of the set. They determine which other sets can serve its jobs.
   */
  readonly routing: SetRoutingInfo;
  /** Jobs that the set cannot serve. */
  readonly jobs: readonly {
    readonly key: string;
    readonly runId?: string;
    readonly repository: string;
    readonly since: number;
  }[];
  /** Whether the set is being deleted. A set without room is then better than none. */
  readonly draining: boolean;
  /** Later events of jobs that were rerouted before. */
  readonly forwardedEvents: readonly ForwardedJobEvent[];
}

/** Result of {@link SetActivities.rerouteJobs}. */
export interface RerouteJobsResult {
  /** Keys of the rerouted jobs, by the workflow id of the set that has them now. */
  readonly rerouted: readonly { readonly to: string; readonly keys: readonly string[] }[];
  /** Number of sets that could serve the jobs, with or without room. */
  readonly substitutes: number;
}

/** Runner as Temporal's visibility lists it. */
export interface ListedRunner {
  readonly workflowId: string;
  readonly phase: RunnerPhase;
  /** Start of the workflow (ms since the epoch). */
  readonly startedAt: number;
  readonly runnerName?: string;
  readonly templateHash?: string;
  readonly ephemeral?: boolean;
  readonly slot?: number;
}

/**
 * Schedule that applies now. `index`: its position in the list; absent if none applies. `until`:
 * time of the next evaluation (ms since the epoch).
 */
export interface ActiveSchedule {
  readonly index?: number;
  readonly until?: number;
}
