/**
 * The interfaces between the activities and the world, and the closed set of errors their adapters throw.
 * Adapters implement these; activities depend on nothing else.
 */
import type { DeferredCompletions } from './watcher/deferredCompletions.ts';
import type { OwnedObjects } from './shared/ownedObjects.ts';
import type { PodDeletion } from '../core/activities/index.ts';
import type { TimeoutPolicy } from '../core/input/timeoutPolicy.ts';
import type { PodStateEvent, SweepReport, VolumeClaim } from '../core/contract/index.ts';
import type { ServedLocation } from '../core/domain/location.ts';
import type {
  ClaimWriter,
  OwnedPodRef,
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
} from '../core/domain/ciServer.ts';
import type { CiServerKind } from '../core/domain/ciServerKind.ts';
import type { CiServerTraits } from '../core/domain/ciServerTraits.ts';
import type { CredentialScope } from '../core/input/sweep.ts';

// ---------------------------------------------------------------------------------------------------- CI server

/** A runner as the CI server lists it. A `busy: false` or `offline` reading is never permission to kill. */
export interface CiRunner {
  readonly id: string;
  readonly name: string;
  readonly online: boolean;
  readonly busy: boolean;
  readonly labels: readonly string[];
}

/**
 * What a runner needs to register or to connect. Secret: lives in memory and in the runner's Secret only,
 * never in an activity's result.
 */
export interface Registration {
  readonly runnerName: string;
  /** Known at once with JIT; with a token only after the runner has registered itself. */
  readonly runnerId?: string;
  /** Where it was made, for whoever finds it after its life: noted by who asked for it, and no part of the CI server's answer. */
  readonly at?: CredentialScope;
  /** Environment of the runner process, secret values included (e.g. ACTIONS_RUNNER_INPUT_JITCONFIG, RUNNER_TOKEN). */
  readonly env: Readonly<Record<string, string>>;
}

/** One CI server seen with one credential. Every method may throw {@link CiServerError}. */
export interface CiServer {
  readonly kind: CiServerKind;
  /** What this server does, and others may not. */
  readonly traits: CiServerTraits;
  /**
   * Does it answer, as far as this process knows? While it does not, few requests are sent, and the others turned away.
   * Absent: it is always asked.
   */
  isReachable?(): boolean;
  /** Why the worker's config does not have the credential used there, for people; absent where it may be used for everything. Of a group's name only {@link register} may know. */
  accessError?(
    scope: Scope,
    group?: RunnerGroupRef,
    runner?: Partial<Pick<RegisterRequest, 'labels' | 'mode'>>,
  ): string | undefined;
  /** @throws CiServerError `name_taken` (JIT 409) and all others but `busy` */
  register(request: RegisterRequest, signal?: AbortSignal): Promise<Registration>;
  /** Returns the ID of the runner group of that name. Present with {@link CiServerTraits.groups}. @throws CiServerError `rejected` when the scope has none, and all others but `busy` */
  runnerGroupId?(scope: Scope, name: string, signal?: AbortSignal): Promise<string>;
  /** Looks one runner up, by id where known, else by name (one request). `undefined`: not listed. */
  findRunner(
    scope: Scope,
    runner: { id?: string; name: string },
    signal?: AbortSignal,
  ): Promise<CiRunner | undefined>;
  /** All runners of the scope, to the list's end. Lists may be a minute old. @throws CiServerError `unavailable` also where it was cut off */
  listRunners(scope: Scope, signal?: AbortSignal): Promise<CiRunner[]>;
  /**
   * Removes a registration.
   * @returns `removed`, or `absent` only when the same credential was seen to list the scope
   * @throws CiServerError `busy` only with {@link CiServerTraits.refusesBusyRemoval}, `credentials`, `rate_limited`, `unavailable`, `rejected`
   */
  removeRegistration(
    scope: Scope,
    runnerId: string,
    signal?: AbortSignal,
  ): Promise<'removed' | 'absent'>;
  /** Stops giving jobs to the runner; idempotent. Present with {@link CiServerTraits.canDisable}. A runner that is gone: fine. */
  disable?(scope: Scope, runnerId: string, signal?: AbortSignal): Promise<void>;
  /**
   * The jobs of the scope that wait for a runner or run on one: the truth, where webhooks were lost. It costs a request for each
   * repository and each run under way, so it is for every few minutes.
   * @param labels - only jobs that a runner with these labels can take
   * @param maxAgeMs - what was found for somebody else may be so old. @default 0
   */
  listQueuedJobs?(
    scope: Scope,
    labels?: readonly string[],
    signal?: AbortSignal,
    maxAgeMs?: number,
  ): Promise<CiJobList>;
  /**
   * One job, where the scope has too many to list. `absent`: it neither waits for a runner nor runs. `undefined`: that cannot be told now.
   * @param job - by its id, and its `owner/repo`
   */
  getJob?(
    scope: Scope,
    job: { readonly id: string; readonly repository: string },
    signal?: AbortSignal,
  ): Promise<CiJob | 'absent' | undefined>;
  /**
   * Has deliveries of webhooks that failed sent again, each of them once. Absent: the server, or this credential, cannot.
   */
  redeliverFailed?(limits: { maxRedeliveries: number }, signal?: AbortSignal): Promise<Redelivered>;
}

export interface Redelivered {
  /** Sent again now. */
  readonly redelivered: number;
  /** Failed ones that were left for the next time. */
  readonly postponed: number;
}

export type CiServerErrorKind =
  /** The runner runs a job. */
  | 'busy'
  /** Primary or secondary limit, 403 or 429. `retryAfterMs` is always set. */
  | 'rate_limited'
  /** 401/403, or 404 although the scope should be visible: says nothing about the runner. */
  | 'credentials'
  /** 409 on registration: the name is in use. */
  | 'name_taken'
  /** Any other 4xx: the request itself is wrong (unknown group, bad label); retrying does not help. */
  | 'rejected'
  /** 5xx, network failure, timeout. */
  | 'unavailable';

export class CiServerError extends Error {
  override readonly name = 'CiServerError';
  readonly kind: CiServerErrorKind;
  /** HTTP status, when there was an answer. */
  readonly status: number | undefined;
  /** How long to wait before asking again, in ms; of one that is `unavailable` only while nobody gets an answer. */
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

/** Gives the CI server client of a credential named in the worker's config. @throws UnknownCredentialError */
export interface CiServers {
  get(credential: string): CiServer;
}

export class UnknownCredentialError extends Error {
  override readonly name = 'UnknownCredentialError';
}

// ------------------------------------------------------------------------------------------------------ compute

export interface PodListener {
  /** A pod appeared, changed or went (`gone: true`). Called for each pod after every relist, too: handlers are idempotent. */
  changed(pod: PodView, previous: PodView | undefined): void;
  /** A complete list was taken (start, and after every loss of the watch). What vanished meanwhile was reported by `changed`
   *  if this process had seen it; what vanished while no process watched must be looked for. */
  relisted(pods: ReadonlyMap<string, PodView>): void;
}

export interface DeletionOptions {
  /** @default the pod's own */
  readonly gracePeriodSeconds?: number;
  /** For the log. */
  readonly reason?: string;
  /** Told to the supervisor first, which would else let the job finish, or take the stop for an eviction. */
  readonly stopReason?: StopReason;
  /** Left alone if its container has started by the time the deletion is carried out; what is terminating already goes on. */
  readonly unlessStarted?: boolean;
  /** Left alone if a job runs in it, or its runner has ended, by the time the deletion is carried out. */
  readonly unlessBusy?: boolean;
}

/** Runs runners: pods on Kubernetes, or local processes. All methods may throw {@link ComputeError}. */
export interface Compute {
  readonly kind: 'kubernetes' | 'process';
  /** As {@link CiServer.isReachable}. */
  isReachable?(): boolean;
  /** Where its pods are. Found out once: it is the same for as long as the compute. */
  location(): Promise<ServedLocation>;
  /** The deterministic name of this runner's pod and Secret (DNS-1123 label). */
  podName(identity: RunnerIdentity): string;
  /** Everything that keeps a request from ever being a pod here, each with the fix; empty when it is sound. Asks nobody. */
  validate(request: Omit<PodRequest, 'identity'>): string[];
  /** The registration stored by an earlier try of the same provisioning, if any. */
  readRegistrationSecret(
    identity: RunnerIdentity,
    namespace?: string,
  ): Promise<Registration | undefined>;
  /** Stores the registration for the pod to read (a Secret). Idempotent: an existing one of the same identity wins and is returned. */
  storeRegistrationSecret(
    identity: RunnerIdentity,
    registration: Registration,
    namespace?: string,
  ): Promise<Registration>;
  /** Creates the pod and the claims it needs. Idempotent: what exists of the same identity is returned. */
  createPod(request: PodRequest, registration: Registration | undefined): Promise<PodView>;
  /**
   * Looks at the live state; `undefined`: no such pod (never was, or gone). The cache answers only if it is synced at or past
   * the pod's own creation.
   */
  getPod(pod: {
    name: string;
    uid?: string;
    namespace?: string;
    /** See {@link OwnedPodRef}. A pod of another is `foreign` with a UID, and no such pod without one. @default whoever's it is: of what no workflow has asked for */
    workflowId?: string;
    /** Whether to ask, whatever a cache may know. @default false */
    live?: boolean;
  }): Promise<PodView | undefined>;
  /** How the watch saw this very pod last, also while nothing can be asked. @returns `undefined`: it did not */
  getCachedPod?(pod: OwnedPodRef): PodView | 'deleted' | undefined;
  /**
   * Asks for deletion of exactly this UID. Absent already, or another UID: `gone`; left alone (`unlessStarted`, `unlessBusy`): how it looks.
   * @throws ComputeError `foreign`: the pod is another installation's, or another runner's; `invalid`: there is no UID
   */
  deletePod(pod: OwnedPodRef, options?: DeletionOptions): Promise<PodDeletion | PodView>;
  /** Deletes what {@link storeRegistrationSecret} made. Absent, or not this runner's: left alone. */
  deleteRegistrationSecret(identity: RunnerIdentity, namespace?: string): Promise<void>;
  /** Deletes the claims that this life's own pods made, the attempts together; kept ones stay. Absent, or not this runner's: left alone. */
  deleteClaims(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    namespace?: string,
  ): Promise<void>;
  /**
   * Notes on the claims that this pod may still write to them. A claim that is gone: fine.
   * @throws ComputeError `foreign`: neither this runner's, nor made by this installation, nor one that its policy lets runners mount
   */
  fenceClaims(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    writer: ClaimWriter,
    namespace?: string,
  ): Promise<void>;
  /** Who may still write to the claims, by {@link fenceClaims}, whichever life noted it. */
  claimWriters(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    namespace?: string,
  ): Promise<ClaimWriter[]>;
  /** Takes back what {@link fenceClaims} noted. */
  releaseClaims(
    identity: RunnerIdentity,
    claims: readonly VolumeClaim[],
    writer: ClaimWriter,
    namespace?: string,
  ): Promise<void>;
  /** May a claim that a pod on this node had mounted be mounted by another? Only once nothing can write from there any more. */
  nodeState(node: string): Promise<'ready' | 'deleted' | 'fenced' | 'unreachable'>;
  /** The last lines of the runner container's log, at most so many bytes; `undefined`: there is none (any more). @throws ComputeError `foreign`, as {@link deletePod} */
  tailLog(pod: OwnedPodRef, maxBytes: number): Promise<string | undefined>;
  /** All pods owned by this installation. */
  list(): Promise<PodView[]>;
  /** What jobs' steps leave is kept: none may have another's folder. @default nothing is kept */
  readonly hasArtifactStore?: boolean;
  /** What the sweep looks at and repairs. Absent: nothing of this compute outlives its lives unseen, and there is no sweep. */
  readonly ownedObjects?: OwnedObjects;
  /** Starts the one shared watch; it survives everything until stopped. */
  watch(listener: PodListener): Promise<{ stop(): Promise<void>; synced(): boolean }>;
}

export type ComputeErrorKind =
  /** 403 "exceeded quota". */
  | 'quota_exceeded'
  /** The pod as asked for is not acceptable (400/422, admission denial): retrying does not help. */
  | 'invalid'
  /** The object is another installation's, or another runner's, by its own marks: nothing is done to it. */
  | 'foreign'
  /** 401/403 for lack of permission. */
  | 'forbidden'
  /** 429, 5xx, network failure. */
  | 'unavailable';

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

/** What the activities are built from. */
export interface ActivityPorts {
  /** ID of the Temporal namespace of the workflows. @default the activity's client is asked */
  readonly temporalNamespaceId?: () => Promise<string>;
  readonly compute: Compute;
  readonly ciServers: CiServers;
  /** Absent: no log is kept. */
  readonly podLogs?: PodLogs;
  /** Timeouts that the worker's config sets for scopes. */
  readonly timeoutPolicy?: TimeoutPolicy;
  /** What goes to Temporal is encrypted. @default it lies there in clear, and inputs that may suffer by that are warned about */
  readonly encrypted?: boolean;
  /** Told of every sweep, for metrics. */
  readonly onSweep?: (report: SweepReport) => void;
  /** Absent: every activity is answered when it has done its part. */
  readonly deferredCompletions?: DeferredCompletions;
}

/** Where the log's tail of a runner goes that did not succeed. */
export interface PodLogs {
  readonly maxBytes: number;
  keep(of: { readonly pod: string; readonly workflowId: string }, text: string): Promise<void>;
  /** The log could not be read or kept. */
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

/** How the watcher answers activities that gave their slot back, and finds those that a dead worker left waiting. */
export interface WaitCompleter {
  /** Completes the pending activity; false when nobody waits under that id. */
  complete(workflowId: string, activityId: string, result: PodView): Promise<boolean>;
  /** Completes the activity that this token was given to; false when it waits no more. */
  completeDeferred(taskToken: Uint8Array, result: unknown): Promise<boolean>;
  /**
   * A hint to the runner's workflow; one that is gone is tolerated.
   * @param changeId - the same for whoever tells of this change: it is told once. Absent: nothing tells it from others
   */
  signalPodState(workflowId: string, state: PodStateEvent, changeId?: string): Promise<void>;
  /** Has the pending activity tried again at once: it looks live itself. One that does not wait any more is tolerated. */
  requestRecheck(workflowId: string, activityId: string, reason: string): Promise<void>;
  /** Activity ids of waits pending in running runner workflows of that place, without those of the workflows in `except`. */
  pendingWaits(
    place: ServedLocation,
    except: ReadonlySet<string>,
  ): AsyncIterable<{ workflowId: string; activityId: string }>;
}
