import type { OwnedObjects } from '../shared/ownedObjects.ts';
import type { PodDeletion } from '../../core/activities/index.ts';
import type { VolumeClaim } from '../../core/contract/index.ts';
import type { ServedLocation } from '../../core/domain/location.ts';
import type {
  ClaimWriter,
  OwnedPodRef,
  PodRef,
  PodRequest,
  PodView,
  RunnerIdentity,
  StopReason,
} from '../../core/domain/pod.ts';
import type { CredentialScope } from '../../core/input/sweep.ts';
import type { Registration } from './ciServer.ts';

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
