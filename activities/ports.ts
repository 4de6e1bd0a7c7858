/**
 * The interfaces between the activities and external systems, and the closed set of errors that
 * their adapters throw. Adapters implement these interfaces. Activities depend on nothing else.
 */
import type { ActivityTask, DeferredCompletions } from './watcher/deferredCompletions.ts';
import type { OwnedObjects } from './shared/ownedObjects.ts';
import type { PodDeletion } from '../core/activities/index.ts';
import type { TimeoutPolicy } from '../core/input/timeoutPolicy.ts';
import type { PodStateEvent, RerunJob, SweepReport, VolumeClaim } from '../core/contract/index.ts';
import type { ServedLocation } from '../core/domain/location.ts';
import type {
  ClaimWriter,
  OwnedPodRef,
  PodRef,
  PodRequest,
  PodView,
  RunnerIdentity,
  StopReason,
} from '../core/domain/pod.ts';
import type {
  CiJob,
  CiJobList,
  RegisterRequest,
  RunnerGroupRef,
  Scope,
  VersionDeadline,
} from '../core/domain/ciServer.ts';
import type { EndEvidence, RerunCandidate } from '../core/domain/rerun.ts';
import type { CiServerKind } from '../core/domain/ciServerKind.ts';
import type { CiServerTraits } from '../core/domain/ciServerTraits.ts';
import type {
  ScaleSet,
  ScaleSetMessage,
  ScaleSetRequest,
  ScaleSetStatistics,
} from '../core/domain/scaleSet.ts';
import type { CredentialScope } from '../core/input/sweep.ts';

// ---------------------------------------------------------------------------------------------------- CI server

/**
 * A runner as the CI server lists it. `busy: false` or `online: false` alone never permits a
 * deletion: lists can be stale.
 */
export interface CiRunner {
  readonly id: string;
  readonly name: string;
  readonly online: boolean;
  readonly busy: boolean;
  readonly labels: readonly string[];
}

/**
 * Credentials that a runner needs to register or to connect. They are secret: they stay in memory
 * and in the runner's Secret, and are never in the result of an activity.
 */
export interface Registration {
  readonly runnerName: string;
  /**
   * ID of the registration. Known immediately with a JIT configuration. With a registration token
   * it is known only after the runner has registered itself.
   */
  readonly runnerId?: string;
  /**
   * Scope and credential of the registration, so that the sweep can remove it after the workflow
   * has ended. Recorded by the caller; not part of the CI server's response.
   */
  readonly at?: CredentialScope;
  /**
   * Environment variables of the runner process, secret values included (for example
   * ACTIONS_RUNNER_INPUT_JITCONFIG or RUNNER_TOKEN).
   */
  readonly env: Readonly<Record<string, string>>;
}

/** Client of one CI server with one credential. Every method may throw {@link CiServerError}. */
export interface CiServer {
  readonly kind: CiServerKind;
  /** Optional capabilities of this kind of server. */
  readonly traits: CiServerTraits;
  /**
   * Returns whether the server answered the latest requests of this process. During an outage few
   * requests are sent and all others are rejected.
   * @default the server is always considered reachable
   */
  isReachable?(): boolean;
  /**
   * Returns why the worker's configuration does not permit the credential for this scope, group or
   * runner. The text is shown to people. Only {@link register} can check the name of a group.
   * @returns `undefined` if the use is permitted
   * @default the credential may be used for everything
   */
  accessError?(
    scope: Scope,
    group?: RunnerGroupRef,
    runner?: Partial<Pick<RegisterRequest, 'labels' | 'mode'>>,
  ): string | undefined;
  /**
   * Creates the registration of a runner.
   * @throws CiServerError of every kind but `busy`. `name_taken` is HTTP 409 for a JIT
   * configuration.
   */
  register(request: RegisterRequest, signal?: AbortSignal): Promise<Registration>;
  /**
   * Returns the ID of the runner group with this name. Present with {@link CiServerTraits.groups}.
   * @throws CiServerError of every kind but `busy`. `rejected` means that the scope has no such
   * group.
   */
  runnerGroupId?(scope: Scope, name: string, signal?: AbortSignal): Promise<string>;
  /**
   * Returns the names of the runner groups that public repositories may use. Absent if the server
   * has no such groups.
   * @throws CiServerError of every kind but `busy`
   */
  publicGroups?(scope: Scope, signal?: AbortSignal): Promise<string[]>;
  /**
   * Returns one runner with a single request: by ID if it is known, otherwise by name.
   * @returns `undefined` if the server does not list the runner
   */
  findRunner(
    scope: Scope,
    runner: { id?: string; name: string },
    signal?: AbortSignal,
  ): Promise<CiRunner | undefined>;
  /**
   * Returns all runners of the scope. The list may be a minute old.
   * @throws CiServerError. An incomplete list is `unavailable`.
   */
  listRunners(scope: Scope, signal?: AbortSignal): Promise<CiRunner[]>;
  /**
   * Removes a registration.
   * @returns `removed`, or `absent` only if the same credential was seen to list the scope
   * @throws CiServerError `busy` (only with {@link CiServerTraits.refusesBusyRemoval}),
   * `credentials`, `rate_limited`, `unavailable` or `rejected`
   */
  removeRegistration(
    scope: Scope,
    runnerId: string,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'>;
  /**
   * Stops assigning jobs to the runner. The call is idempotent and ignores a runner that no longer
   * exists. Present with {@link CiServerTraits.canDisable}.
   */
  disable?(scope: Scope, runnerId: string, signal?: AbortSignal): Promise<void>;
  /**
   * Returns the jobs of the scope that are queued or in progress, in case webhook events were lost.
   * It costs one request per repository and per run in progress, so call it every few minutes at
   * most.
   * @param labels - limits the list to jobs that a runner with these labels can take
   * @param maxAgeMs - maximum age of a cached list (ms). @default 0
   */
  listQueuedJobs?(
    scope: Scope,
    labels?: readonly string[],
    signal?: AbortSignal,
    maxAgeMs?: number,
  ): Promise<CiJobList>;
  /**
   * Returns one job, for scopes with too many jobs to list.
   * @param job - its ID, and its repository as `owner/repo`
   * @returns `absent` if the job is neither queued nor in progress; `undefined` if its state is
   * unknown now
   */
  getJob?(
    scope: Scope,
    job: { readonly id: string; readonly repository: string },
    signal?: AbortSignal,
  ): Promise<CiJob | 'absent' | undefined>;
  /**
   * Returns until when the server accepts runners of a version.
   * @param version - such as `2.338.0`
   * @returns `undefined` if the server does not know the version, or reports no deadlines
   * @throws CiServerError
   * @default the server reports no deadlines
   */
  versionDeadline?(
    scope: Scope,
    version: string,
    signal?: AbortSignal,
  ): Promise<VersionDeadline | undefined>;
  /**
   * Runs jobs again. Present if the server can do so, and the worker's configuration permits it for
   * the credential.
   */
  readonly reruns?: JobReruns;
  /**
   * Requests redelivery of failed webhook deliveries, once for each delivery.
   * @default the server or this credential cannot redeliver
   */
  redeliverFailed?(limits: { maxRedeliveries: number }, signal?: AbortSignal): Promise<Redelivered>;
  /**
   * Scale sets of the server.
   * @default the server has no scale sets
   */
  readonly scaleSets?: ScaleSets;
}

/** Scale sets of a CI server. Every method may throw {@link CiServerError}. */
export interface ScaleSets {
  /**
   * Returns the scale set with this name, or `undefined` if there is none.
   * @throws CiServerError `name_taken` if another system created it and `adopt` is not set
   */
  find(request: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet | undefined>;
  /**
   * Returns the scale set with this name, and creates it if there is none. One that exists keeps its
   * labels: see `relabel`.
   * @throws CiServerError `name_taken` if another system created it and `adopt` is not set;
   * `rejected` if the server cannot store the mark and `adopt` is not set
   */
  ensure(request: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet>;
  /**
   * Changes a scale set to have the requested labels. Only the holder of its session may do so:
   * otherwise another system is using it.
   * @throws CiServerError `rejected` if the server cannot store the mark and `adopt` is not set
   */
  relabel(scaleSet: ScaleSet, request: ScaleSetRequest, signal?: AbortSignal): Promise<ScaleSet>;
  /**
   * Removes the scale set with this name and mark, or with `adopt` the one with this name.
   * @returns `absent` if there is none, or if another system created it
   */
  remove(
    request: Omit<ScaleSetRequest, 'labels'>,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'>;
  /**
   * Opens the only session of a scale set. A request whose response is lost leaves a session with
   * an unknown ID, so it is never repeated by the adapter.
   * @param owner - name that the server shows to others who request a session
   * @throws CiServerError `conflict` if a session exists; `session_lost` if the scale set is gone
   */
  openSession(
    scope: Scope,
    scaleSetId: number,
    owner: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetSession>;
  /**
   * Continues a session that another process opened.
   * @throws CiServerError `session_lost` if the server has ended it
   */
  adoptSession(
    scope: Scope,
    scaleSetId: number,
    sessionId: string,
    signal?: AbortSignal,
  ): Promise<ScaleSetSession>;
  /** Returns the ID of the runner with this name, or `undefined` if there is none. */
  runnerId(scope: Scope, name: string, signal?: AbortSignal): Promise<string | undefined>;
  /**
   * Removes a runner of a scale set.
   * @throws CiServerError `busy` while it runs a job
   */
  removeRunner(scope: Scope, runnerId: string, signal?: AbortSignal): Promise<'removed' | 'absent'>;
}

/**
 * A session: the permission to read the messages of a scale set. Its token stays in this object and
 * is renewed by it. Every method throws CiServerError `session_lost` if the server has ended the
 * session.
 */
export interface ScaleSetSession {
  readonly id: string;
  /** Numbers at the time at which the session was opened or adopted. */
  readonly statistics: ScaleSetStatistics;
  /**
   * Waits for the next message, about 50 s.
   * @param last - ID of the message that was acknowledged last; 0 for none
   * @param capacity - number of jobs that the scale set can run at a time, which limits the jobs
   * that the server assigns to it
   * @returns `undefined` if there was none
   */
  next(last: number, capacity: number, signal?: AbortSignal): Promise<ScaleSetMessage | undefined>;
  /** Removes a message from the queue. A message that is no longer there is ignored. */
  acknowledge(messageId: number, signal?: AbortSignal): Promise<void>;
  /** Acquires available jobs. @returns the IDs of the acquired ones */
  acquire(requestIds: readonly number[], signal?: AbortSignal): Promise<number[]>;
  /** Ends the session, so that the next one can be opened at once. */
  close(signal?: AbortSignal): Promise<void>;
}

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

/** Result of one request for redelivery of failed webhook deliveries. */
export interface Redelivered {
  /** Number of deliveries requested again now. */
  readonly redelivered: number;
  /** Number of failed deliveries left for the next call. */
  readonly postponed: number;
}

/**
 * Reason why a request to a CI server failed. It decides whether and when the request is retried.
 */
export type CiServerErrorKind =
  /** The runner is running a job, or jobs of the workflow run to run again have not ended. */
  | 'busy'
  /** Primary or secondary limit, 403 or 429. `retryAfterMs` is always set. */
  | 'rate_limited'
  /** 401 or 403, or 404 for a scope that should be visible. It says nothing about the runner. */
  | 'credentials'
  /** 409 on registration: the name is in use. */
  | 'name_taken'
  /**
   * Any other 4xx. The request itself is wrong, for example an unknown group or an invalid label. A
   * retry does not help.
   */
  | 'rejected'
  /** 409 for the session of a scale set: another process has it. */
  | 'conflict'
  /** The server has ended the session of a scale set, or has removed the scale set. */
  | 'session_lost'
  /** 5xx, network failure, timeout. */
  | 'unavailable';

/**
 * Failure of a request to a CI server. Adapters map every failure of theirs to one of the kinds.
 */
export class CiServerError extends Error {
  override readonly name = 'CiServerError';
  readonly kind: CiServerErrorKind;
  /** HTTP status, if there was a response. */
  readonly status: number | undefined;
  /**
   * Time to wait before the next request (ms). For `unavailable` it is set only if the server
   * answers no request of this process.
   */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: CiServerErrorKind,
    message: string,
    more: { status?: number | undefined; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.status = more.status;
    this.retryAfterMs = more.retryAfterMs;
  }
}

/**
 * Returns the CI server client of a credential in the worker's configuration.
 * @throws UnknownCredentialError if the configuration has no such credential
 */
export interface CiServers {
  get(credential: string): CiServer;
}

/** The worker's configuration has no credential with the requested name. */
export class UnknownCredentialError extends Error {
  override readonly name = 'UnknownCredentialError';
}

// ------------------------------------------------------------------------------------------------------ compute

/** Receiver of the changes that {@link Compute.watch} observes. */
export interface PodListener {
  /**
   * Called when a pod was created, changed or deleted (`gone: true`). Also called for each pod
   * after every relist, so implementations must be idempotent.
   */
  changed(pod: PodView, previous: PodView | undefined): void;
  /**
   * Called after each complete list: at the start and after every interruption of the watch.
   * `changed` reports pods that were deleted meanwhile if this process had seen them. The listener
   * must find all other deleted pods itself.
   */
  relisted(pods: ReadonlyMap<string, PodView>): void;
}

/** Options of {@link Compute.deletePod}. */
export interface DeletionOptions {
  /**
   * Grace period between SIGTERM and SIGKILL (s).
   * @default the pod's terminationGracePeriodSeconds
   */
  readonly gracePeriodSeconds?: number;
  /** Reason for the log. */
  readonly reason?: string;
  /**
   * Reason passed to the supervisor before the deletion. Without it, the supervisor lets the job
   * finish or treats the stop as an eviction.
   */
  readonly stopReason?: StopReason;
  /**
   * Whether to skip the deletion if the container has started by then. A pod that is already
   * terminating keeps terminating.
   */
  readonly unlessStarted?: boolean;
  /** Whether to skip the deletion if the runner is running a job or has ended by then. */
  readonly unlessBusy?: boolean;
}

/** Options of {@link Compute.streamLog}. */
export interface LogStreamOptions {
  /**
   * Whether the stream continues until the runner container has ended.
   * @default false
   */
  readonly follow?: boolean;
  /**
   * Number of lines from the end of the log at which the stream begins.
   * @default the whole log
   */
  readonly tailLines?: number;
  /** Ends the stream, without an error. */
  readonly signal: AbortSignal;
}

/** Scope and credential with which a runner registers, and what its pod gets for that. */
export interface RegistrationOrigin extends CredentialScope {
  readonly mode: 'jit' | 'token';
}

/**
 * Platform that runs the runners: pods on Kubernetes, or local processes. All methods may throw
 * {@link ComputeError}.
 */
export interface Compute {
  readonly kind: 'kubernetes' | 'process';
  /** Returns whether the platform answers, as {@link CiServer.isReachable} does. */
  isReachable?(): boolean;
  /** Returns the location of the pods. It is constant for the lifetime of this object. */
  location(): Promise<ServedLocation>;
  /** Returns the deterministic name of the pod and Secret of this runner (DNS-1123 label). */
  podName(identity: RunnerIdentity): string;
  /**
   * Returns every reason why the request can never become a pod here, each with its fix. The list
   * is empty if the request is valid. Sends no requests.
   * @param at - how the runner registers, for rules about that
   */
  validate(request: Omit<PodRequest, 'identity'>, at?: RegistrationOrigin): string[];
  /** Returns the registration that an earlier attempt of the same provisioning stored, if any. */
  readRegistrationSecret(
    identity: RunnerIdentity,
    namespace?: string,
  ): Promise<Registration | undefined>;
  /**
   * Stores the registration in a Secret for the pod. The call is idempotent: it returns an existing
   * registration of the same identity.
   */
  storeRegistrationSecret(
    identity: RunnerIdentity,
    registration: Registration,
    namespace?: string,
  ): Promise<Registration>;
  /**
   * Creates the pod and the claims that it needs. The call is idempotent: it returns an existing
   * pod of the same identity.
   */
  createPod(request: PodRequest, registration: Registration | undefined): Promise<PodView>;
  /**
   * Returns the state of a pod. A cached state is used only if the cache is synced to the creation
   * of the pod or later.
   * @returns `undefined` if there is no such pod
   */
  getPod(pod: {
    name: string;
    uid?: string;
    namespace?: string;
    /**
     * Owner that the pod must have, see `OwnedPodRef`. If the pod has another owner, the call
     * throws `foreign` with a UID, and returns `undefined` without one.
     * @default the pod may have any owner, for callers that no workflow called
     */
    workflowId?: string;
    /**
     * Whether to bypass the cache.
     * @default false
     */
    live?: boolean;
  }): Promise<PodView | undefined>;
  /**
   * Returns the state of the pod as the watch last saw it, also during an outage.
   * @returns `undefined` if the watch has not seen this pod
   */
  getCachedPod?(pod: OwnedPodRef): PodView | 'deleted' | undefined;
  /**
   * Requests the deletion of the pod with exactly this UID.
   * @returns `deleted` if there is no pod or one with another UID. If `unlessStarted` or `unlessBusy`
   * prevented the deletion, the current state of the pod.
   * @throws ComputeError `foreign` if the pod belongs to another installation or runner; `invalid`
   * if there is no UID
   */
  deletePod(pod: OwnedPodRef, options?: DeletionOptions): Promise<PodDeletion | PodView>;
  /**
   * Deletes the Secret of {@link storeRegistrationSecret}. A missing Secret, or one of another
   * runner, is ignored.
   */
  deleteRegistrationSecret(identity: RunnerIdentity, namespace?: string): Promise<void>;
  /**
   * Deletes the claims that the pods of this runner workflow created, for all its attempts. Claims
   * to keep are not deleted. A missing claim, or one of another runner, is ignored.
   */
  deleteClaims(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    namespace?: string,
  ): Promise<void>;
  /**
   * Records on the claims that this pod may still write to them. A missing claim is ignored.
   * @throws ComputeError `foreign` if a claim belongs to another runner and was not created by this
   * installation, and its policy does not let runners mount it
   */
  fenceClaims(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    writer: ClaimWriter,
    namespace?: string,
  ): Promise<void>;
  /**
   * Returns the pods that may still write to the claims, as {@link fenceClaims} of any runner
   * workflow recorded.
   */
  claimWriters(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    namespace?: string,
  ): Promise<ClaimWriter[]>;
  /** Removes the record of {@link fenceClaims}. */
  releaseClaims(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    writer: ClaimWriter,
    namespace?: string,
  ): Promise<void>;
  /**
   * Returns the state of a node. A claim that a pod mounted there may be mounted elsewhere only if
   * nothing on the node can still write to it.
   */
  nodeState(node: string): Promise<'ready' | 'deleted' | 'fenced' | 'unreachable'>;
  /**
   * Returns the last lines of the runner container's log, at most `maxBytes` bytes.
   * @returns `undefined` if there is no log
   * @throws ComputeError `foreign`, as {@link deletePod} does
   */
  tailLog(pod: OwnedPodRef, maxBytes: number): Promise<string | undefined>;
  /**
   * Opens the log of the runner container.
   * @returns `undefined` if there is no log: the container has not started, or the pod is deleted
   * @throws ComputeError `foreign`, as {@link deletePod} does. The stream may also throw
   * ComputeError.
   */
  streamLog(
    pod: OwnedPodRef,
    options: LogStreamOptions,
  ): Promise<AsyncIterable<Uint8Array> | undefined>;
  /**
   * Returns all pods of this installation.
   * @param options - `cached`: as the watch knows them; fails as `unavailable` if it is not current
   */
  list(options?: { readonly cached?: boolean }): Promise<PodView[]>;
  /**
   * Returns which quota of the namespace does not admit another pod like this one.
   * @param wanted - `namespace`: default that of requests without one; `like`: a pod with the same
   * requests
   * @returns `undefined` if every quota admits it, or the worker may not read them
   * @default the platform has no quotas
   */
  exhaustedQuota?(wanted: {
    readonly namespace?: string;
    readonly like?: PodRef;
  }): Promise<string | undefined>;
  /**
   * Where the files of a job's steps are kept: in the artifact store, or until the end of the job
   * in a claim of the job. A step may use only what belongs to the job run that started it.
   * @default each step's ARTIFACT_DIR is deleted with its pod, and there is no SHARED_DIR
   */
  readonly stepStorage?: 'store' | 'claim';
  /**
   * Objects that the sweep examines and repairs.
   * @default there is no sweep: no object of this compute outlives its runner workflow
   */
  readonly ownedObjects?: OwnedObjects;
  /** Starts the single shared watch. It recovers from all errors until it is stopped. */
  watch(listener: PodListener): Promise<{ stop(): Promise<void>; synced(): boolean }>;
}

/**
 * Reason why a request to the compute failed. It decides whether and when the request is retried.
 */
export type ComputeErrorKind =
  /** 403 "exceeded quota". */
  | 'quota_exceeded'
  /**
   * The pod specification is rejected (400, 422 or an admission webhook). A retry does not help.
   */
  | 'invalid'
  /**
   * The object belongs to another installation or runner, by its own labels and annotations. It is
   * not touched.
   */
  | 'foreign'
  /** 401 or 403: a permission is missing. */
  | 'forbidden'
  /** 429, 5xx, network failure. */
  | 'unavailable';

/**
 * Failure of a request to the compute. Adapters map every failure of theirs to one of the kinds.
 */
export class ComputeError extends Error {
  override readonly name = 'ComputeError';
  readonly kind: ComputeErrorKind;
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: ComputeErrorKind,
    message: string,
    more: { retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.kind = kind;
    this.retryAfterMs = more.retryAfterMs;
  }
}

// ---------------------------------------------------------------------------------------------------- all of them

/** Dependencies of the activities. */
export interface ActivityPorts {
  /**
   * Returns the ID of the Temporal namespace of the workflows.
   * @default read with the client of the activity
   */
  readonly temporalNamespaceId?: () => Promise<string>;
  readonly compute: Compute;
  readonly ciServers: CiServers;
  /**
   * Storage for the logs of failed runners.
   * @default no logs are kept
   */
  readonly podLogs?: PodLogs;
  /** Timeouts that the worker's configuration sets for scopes. */
  readonly timeoutPolicy?: TimeoutPolicy;
  /**
   * Whether payloads sent to Temporal are encrypted. If not, environment values in an input cause a
   * warning.
   * @default false
   */
  readonly encrypted?: boolean;
  /** Called with what the listener of a set's scale set has done, for metrics. */
  readonly onScaleSet?: (set: string, activity: ScaleSetActivity) => void;
  /** Called after every sweep, for metrics. */
  readonly onSweep?: (report: SweepReport) => void;
  /**
   * Completions that are sent later than the end of the activity function.
   * @default every activity completes when its function returns
   */
  readonly deferredCompletions?: DeferredCompletions;
}

/** Activity of a scale set's listener, for metrics. */
export interface ScaleSetActivity {
  /** Whether this process holds the session. */
  readonly up: boolean;
  /** Number of messages read. @default 0 */
  readonly messages?: number;
  /** Number of jobs acquired. @default 0 */
  readonly acquired?: number;
}

/** Storage for the last part of the log of a runner that did not succeed. */
export interface PodLogs {
  readonly maxBytes: number;
  keep(of: { readonly pod: string; readonly workflowId: string }, text: string): Promise<void>;
  /** Called if the log could not be read or stored. */
  failed(of: { readonly pod: string; readonly workflowId: string }, error: unknown): void;
}

/** The part of a pino logger that activities use. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** The part of a pino logger that the adapters of CI servers use. */
export interface RequestLogger {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

// ------------------------------------------------------------------------------------- waits that hold no slot

/**
 * Completes activities that wait without a task slot, and finds those that a stopped worker left
 * pending.
 */
export interface WaitCompleter {
  /**
   * Completes the pending activity.
   * @returns `false` if no activity is pending under this ID
   */
  complete(workflowId: string, activityId: string, result: PodView): Promise<boolean>;
  /**
   * Completes the activity of this task.
   * @returns `false` if the activity is no longer pending
   */
  completeDeferred(task: ActivityTask, result: unknown): Promise<boolean>;
  /**
   * Signals a pod state to the runner's workflow as a hint. A workflow that has ended is ignored.
   * @param changeId - deduplicates signals of the same change from several senders. @default
   * signals are not deduplicated
   */
  signalPodState(workflowId: string, state: PodStateEvent, changeId?: string): Promise<void>;
  /**
   * Retries the pending activity immediately, so that it reads the live state itself. An activity
   * that is no longer pending is ignored.
   */
  requestRecheck(workflowId: string, activityId: string, reason: string): Promise<void>;
  /**
   * Lists the pending waits of running runner workflows at this location, without the workflows in
   * `except`.
   */
  pendingWaits(
    place: ServedLocation,
    except: ReadonlySet<string>,
  ): AsyncIterable<{ workflowId: string; activityId: string }>;
}
