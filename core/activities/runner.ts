/** Activities of the workflows `runner` and `deregistration`. */
import type { RegisterRequest, RemovalResult, Scope } from '../domain/ciServer.ts';
import type { VolumeClaim } from '../contract/index.ts';
import type {
  ClaimWriter,
  PodRef,
  PodRequest,
  PodSnapshot,
  RunnerIdentity,
  StopReason,
} from '../domain/pod.ts';
import type { Location } from '../domain/location.ts';
import type { PodCondition } from '../domain/podConditions.ts';
import type { SetNotification } from './runnerSet.ts';
import type { DeregistrationSpec } from '../input/deregistration.ts';
import type { RunnerSpec } from '../input/runner.ts';

/**
 * Validated runner, and the location of its pods. The location does not change for the whole
 * workflow, whichever worker runs it.
 */
export interface AdmittedRunner extends RunnerSpec {
  readonly location: Location;
  /**
   * Whether the CI server would remove a busy runner and end its job.
   * @default busy runners are protected
   */
  readonly removalEndsJob?: true;
  /**
   * Whether the runner continues when its registration is removed, and must be stopped.
   * @default it ends by itself
   */
  readonly outlivesRegistration?: true;
  /**
   * Reason why the input of a continued run is not valid anymore. The other fields are then only
   * those needed to drain the runner.
   */
  readonly rejection?: string;
}

/**
 * Input of an activity that accesses a cluster, with the location of the runner. Workers of another
 * location reject it.
 */
export type WithLocation<T> = T & { readonly location: Location };

/**
 * Activities of the workflows `runner` and `deregistration`. All are idempotent: a worker that ends
 * between a side effect and its completion does not change the final result.
 */
export interface RunnerActivities {
  /**
   * Validates the input of a runner and fills in the defaults. A local activity. Its only request,
   * sent once, reads the identity of the cluster.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitRunner(input: AdmitRunnerInput): Promise<AdmittedRunner>;
  /**
   * Validates the input of a deregistration and fills in the defaults, without any request. A local
   * activity.
   * @throws ApplicationFailure `InvalidInput`, with every invalid field
   */
  admitDeregistration(input: { input: unknown }): Promise<DeregistrationSpec>;
  /** Registers the runner, stores the registration in its Secret and creates its pod. */
  provision(input: WithLocation<ProvisionInput>): Promise<ProvisionResult>;
  /** Returns what an interrupted {@link provision} has created. */
  findProvisioned(input: WithLocation<FindProvisionedInput>): Promise<FoundProvision>;
  /**
   * Waits until the pod is online, has ended or is deleted. It occupies no activity slot meanwhile.
   */
  awaitPod(input: WithLocation<AwaitPodInput>): Promise<PodSnapshot>;
  /** Reads the current state of the pod. */
  getPod(input: WithLocation<PodInput>): Promise<PodSnapshot>;
  /** Polls the CI server until the runner is online there. */
  awaitRunnerOnline(input: AwaitRunnerOnlineInput): Promise<OnlineRunner>;
  /** Removes the registration of a runner. */
  removeRegistration(input: RemoveRegistrationInput): Promise<RegistrationRemoval>;
  /**
   * Deletes pod, registration Secret and claims, as far as they are named. All deletions of a
   * runner's objects go through it. If the pod was to be deleted only under a condition
   * (`unlessStarted`, `unlessBusy`) that does not hold, nothing is deleted.
   * @returns the state of the pod if nothing was deleted
   */
  tearDown(input: WithLocation<TearDownInput>): Promise<PodDeletion | PodSnapshot>;
  /** Marks claims that a pod may still write to. */
  fenceClaims(input: WithLocation<FenceClaimsInput>): Promise<void>;
  /**
   * Waits until nothing on a lost node can write to the claims marked by {@link fenceClaims}
   * anymore.
   */
  awaitClaims(input: WithLocation<ClaimsInput>): Promise<void>;
}

/** Input of {@link RunnerActivities.admitRunner}. */
export interface AdmitRunnerInput {
  /** Input of the workflow, not validated yet. */
  readonly input: unknown;
  readonly workflowId: string;
  /** Run id of the workflow's first run. */
  readonly firstRunId: string;
  /**
   * Present if the run continues another one, whose pods exist. Workers of another location reject
   * it, and an input that is not valid anymore leads to a drain instead of a failure.
   */
  readonly continued?: { readonly location: Location };
}

/** Input of {@link RunnerActivities.provision}. */
export interface ProvisionInput {
  /** Name of the runner at the CI server. */
  readonly runnerName: string;
  /** Registration to request. Absent for a plain command. */
  readonly ciServer?: {
    readonly credential: string;
    readonly registration: Omit<RegisterRequest, 'name'>;
  };
  readonly pod: PodRequest;
  /** Interval between two attempts with a rejected credential (ms). */
  readonly credentialsRetryMs: number;
  /**
   * Maximum time to wait for the runner to be online before returning (ms). After that a deadline
   * of the pod is due.
   */
  readonly completeWithinMs: number;
}

/**
 * Result of {@link RunnerActivities.provision}. It contains no secrets; those stay in the runner's
 * Secret.
 */
export interface ProvisionResult {
  /** ID of the registration at the CI server, if it is known. */
  readonly runnerId?: string;
  readonly pod: PodSnapshot;
}

/**
 * Existing parts of a {@link ProvisionResult}. An ID without a pod: the runner is registered, and
 * its pod was never created.
 */
export type FoundProvision = Partial<ProvisionResult>;

/** Input of {@link RunnerActivities.findProvisioned}. */
export interface FindProvisionedInput {
  readonly identity: RunnerIdentity;
  /** Kubernetes namespace of the pod. @default the worker's namespace */
  readonly namespace?: string;
  /** Whether the runner is registered at a CI server. */
  readonly hasRegistration: boolean;
}

/** Input of {@link RunnerActivities.getPod}. */
export interface PodInput {
  readonly pod: PodRef;
}

/** Input of {@link RunnerActivities.awaitPod}. */
export interface AwaitPodInput extends PodInput {
  /** Condition to wait for. */
  readonly until: PodCondition;
  /** Event to send to the runner's set when the wait begins. */
  readonly notify?: SetNotification;
}

/** Input of {@link RunnerActivities.awaitRunnerOnline}. */
export interface AwaitRunnerOnlineInput {
  readonly scope: Scope;
  readonly credential: string;
  readonly runner: { readonly id?: string; readonly name: string };
  /** First interval between two checks (ms). It doubles up to 30 s. */
  readonly intervalMs: number;
  /** Interval between two attempts with a rejected credential (ms). */
  readonly credentialsRetryMs: number;
}

/** Runner that is online at the CI server. */
export interface OnlineRunner {
  /** ID of the registration at the CI server. */
  readonly runnerId: string;
  readonly busy: boolean;
}

/** Input of {@link RunnerActivities.removeRegistration}. */
export interface RemoveRegistrationInput {
  readonly scope: Scope;
  readonly credential: string;
  /**
   * Runner to remove. It is found by its name if its ID is not known, and removed only if Holdfast
   * registered it from the worker's location.
   */
  readonly runner: { readonly id?: string; readonly name: string };
  /** Whether the runner belongs to a scale set. @default false */
  readonly inScaleSet?: true;
  /**
   * Reaction to a busy runner. `retry`: the activity fails and is retried while the runner is busy.
   * `return`: it returns `busy` at once.
   */
  readonly onBusy: 'retry' | 'return';
  /**
   * Time to wait before the next attempt for a busy runner (ms).
   * @default the backoff of the retry policy
   */
  readonly busyRetryMs?: number;
  /** Limit up to which that time doubles (ms). @default busyRetryMs: it stays constant */
  readonly maxBusyRetryMs?: number;
  /** Interval between two attempts with a rejected credential (ms). */
  readonly credentialsRetryMs: number;
}

/** Result of {@link RunnerActivities.removeRegistration}. */
export interface RegistrationRemoval {
  readonly result: RemovalResult;
  /**
   * Whether this is not the first attempt. An absent runner may then have been removed by an
   * earlier attempt whose response was lost.
   */
  readonly afterRetry?: true;
  /**
   * Number of attempts for this runner, including this one. It is a lower bound, because the count
   * is lost with the worker.
   */
  readonly attempts: number;
  readonly runnerId?: string;
}

/** Input of {@link RunnerActivities.tearDown}. */
export interface TearDownInput {
  readonly identity: RunnerIdentity;
  /** Kubernetes namespace of the objects. @default the worker's namespace */
  readonly namespace?: string;
  /** Pod to delete. If absent, the pod is kept or does not exist. */
  readonly pod?: {
    /**
     * Name and UID of the pod. If provisioning never returned them, the pod is found by its
     * deterministic name.
     */
    readonly ref?: PodRef;
    /** Grace period (s); 0 kills the pod at once. @default the pod's own */
    readonly gracePeriodSeconds?: number;
    /** Reason for the log. */
    readonly reason?: string;
    /** Stop reason that the supervisor receives before the pod is stopped. */
    readonly stopReason?: StopReason;
    /** Whether the end of the log is saved first. */
    readonly saveLog?: boolean;
    /**
     * Whether the activity may wait a moment until the pod is gone, because the caller has nothing
     * else to do.
     */
    readonly waitForDeletion?: boolean;
    /** Whether to keep the pod if its container has started by the time of the deletion. */
    readonly unlessStarted?: boolean;
    /**
     * Whether to keep the pod if a job runs in it, or its runner has ended, by the time of the
     * deletion.
     */
    readonly unlessBusy?: boolean;
  };
  /**
   * Event to send to the runner's set once the pod is deleted, or at once with `early`. Only for a
   * local activity, which does not complete before.
   */
  readonly notify?: SetNotification & { readonly early: boolean };
  /** Whether to delete the Secret with the registration. */
  readonly secret?: boolean;
  /** Claims of the runner. Only those that belong to its workflow are deleted. */
  readonly claims?: readonly VolumeClaim[];
}

/** Input of {@link RunnerActivities.awaitClaims}. */
export interface ClaimsInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  readonly claims: readonly VolumeClaim[];
}

/** Input of {@link RunnerActivities.fenceClaims}. */
export interface FenceClaimsInput extends ClaimsInput {
  /** Pod that may still write to the claims, and its node. */
  readonly writer: ClaimWriter;
}

/** Result of the deletion of a pod. */
export type PodDeletion = 'deleted' | 'terminating';
