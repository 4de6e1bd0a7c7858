/**
 * Pods as workflows and activities use them: requested and observed state. Plain data, the same for
 * every compute.
 */
import type { RunnerKindName } from './runnerKinds/runnerKinds.ts';
import type {
  CertificateAuthority,
  RunnerProxy,
  SignalTarget,
  VolumeClaim,
} from '../contract/index.ts';

/**
 * Identity of one runner of a runner workflow. Everything that is created for it has a name derived
 * from a hash of the first three fields, so that a retried activity finds what an earlier attempt
 * created.
 */
export interface RunnerIdentity {
  readonly workflowId: string;
  /** First run ID of the workflow. It stays the same after continue-as-new and resets. */
  readonly firstRunId: string;
  /** 1 for the first runner of the workflow, +1 for each replacement. */
  readonly attempt: number;
  /**
   * ID of the workflow's Temporal namespace. Names do not depend on it. It is recorded on created
   * objects for the sweep of an installation that uses another Temporal server or namespace.
   */
  readonly temporalNamespaceId?: string;
}

/** Desired state of a runner's pod. Plain data without secrets. */
export interface PodRequest {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Fragment of a PodTemplateSpec, merged under the fields that Holdfast sets. Its container
   * `runner` is the runner container.
   */
  readonly template?: PodTemplate;
  readonly proxy?: RunnerProxy;
  readonly ca?: CertificateAuthority;
  readonly labels: Readonly<Record<string, string>>;
  readonly terminationGracePeriodSeconds: number;
  /** Settings of the supervisor. Absent if the command runs without it. */
  readonly supervision?: SupervisorConfig;
  /** @default none */
  readonly volumeClaims?: readonly VolumeClaim[];
  /** Storage for the artifacts of a job's step. @default nothing is stored */
  readonly storage?: StorageRequest;
  /**
   * Whether the pod runs code of an untrusted change. Then it gets no access to objects of others,
   * even if the policy permits it.
   */
  readonly untrusted?: true;
  /**
   * Whether the set waits for the notification that the runner is busy, which is then sent without
   * a delay.
   */
  readonly notifyBusy?: true;
  /**
   * Maximum duration of a job of this runner (ms). It is recorded on the pod, for when its workflow
   * does not exist any more.
   */
  readonly jobTimeoutCapMs?: number;
}

/** Storage for the artifacts of a step; see core/domain/artifactLayout.ts. */
export interface StorageRequest {
  /** Path of the step, the same for all its attempts. */
  readonly path: string;
  /**
   * Keys of the snapshots from which SHARED_DIR may be restored in addition to those of earlier
   * attempts, best first.
   */
  readonly sharedDirSources: readonly string[];
  /** Maximum time after the end of the step for which the upload is tried (ms). */
  readonly timeoutMs: number;
  /**
   * The job's workflow, as Temporal reports it, with attempt 0. Its claim has the step's
   * directories.
   * @default none: the installation has no claims of jobs
   */
  readonly job?: RunnerIdentity;
}

/**
 * Settings with which the supervisor runs the command; see docs/supervisor.md. Durations are in ms.
 */
export interface SupervisorConfig {
  /**
   * How the supervisor becomes the first process of the container.
   * @default as the compute does it
   */
  readonly mode?: 'inject' | 'image' | 'none';
  /** Kind of the runner that the supervisor watches. */
  readonly runnerKind: RunnerKindName;
  /** Whether the runner takes one job only: after it is busy, it does not become idle again. */
  readonly ephemeral: boolean;
  readonly onTerm: 'drain' | 'stop' | 'checkpoint';
  readonly drainTimeoutMs: number;
  readonly signalTimeoutMs: number;
  readonly cleanupTimeoutMs: number;
  /** Sequence of signals instead of a single one. */
  readonly signals?: string;
  /** Target of the signals of a stop. */
  readonly signalTarget: SignalTarget;
  readonly cleanupCommand?: readonly string[];
  /** Maximum duration of a plain command. @default the supervisor has no timeout */
  readonly timeoutMs?: number;
  /**
   * Maximum time until the command has started (a runner: until it is online). The startup probe
   * fails three minutes later.
   */
  readonly startupTimeoutMs: number;
}

/**
 * Name of the volume claim that keeps the state of a workload between attempts:
 * `HOLDFAST_STATE_DIR`.
 */
export const STATE_CLAIM = 'state';

/** Name of the claim that a job has for SHARED_DIR and ARTIFACT_DIR of its steps. */
export const JOB_CLAIM = 'job';

/** A pod whose end was not observed, and the node from which it may still write to its claims. */
export interface ClaimWriter {
  readonly podUid: string;
  readonly node: string;
}

/** PodTemplateSpec fragment of a user, merged under the fields that Holdfast sets. */
export interface PodTemplate {
  readonly metadata?: {
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly spec?: Record<string, unknown>;
}

/** Reference to exactly one pod: a name may be reused, a UID never. */
export interface PodRef {
  readonly name: string;
  readonly uid: string;
  readonly namespace?: string;
}

/** Reference to a pod and to the workflow that must own it. */
export interface OwnedPodRef extends PodRef {
  /** ID of the workflow in the pod's annotations. A pod of another workflow is left alone. */
  readonly workflowId: string;
}

/** State of a pod at one moment, with the fields on which decisions depend. */
export interface PodView extends PodSnapshot {
  readonly workflowId: string;
}

/** State of a pod for its own workflow. */
export interface PodSnapshot extends PodRef {
  /** Whether the scheduler has chosen a node. */
  readonly scheduled: boolean;
  readonly node?: string;
  /** Time of creation (ISO 8601). */
  readonly createdAt: string;
  /** Time at which the runner container started (ISO 8601). Absent if it never did. */
  readonly startedAt?: string;
  /**
   * Whether the pod has ended: the runner container has an exit code and nothing is being uploaded
   * any more, the phase of the pod is final, or the pod (this UID) is deleted.
   */
  readonly ended: boolean;
  /**
   * Time until which the pod waits for the upload after its runner container has ended (ISO 8601).
   */
  readonly uploadingUntil?: string;
  /** Whether the pod (this UID) does not exist any more. */
  readonly deleted: boolean;
  /**
   * Set if the deletion was not observed: the runner may have started since the pod was last seen.
   */
  readonly endUnobserved?: true;
  /** Exit of the runner container, if it is known. */
  readonly exit?: PodExit;
  /** Whether deletionTimestamp is set: the pod has received SIGTERM. */
  readonly terminating: boolean;
  /** End of the grace period of a terminating pod (ISO 8601). */
  readonly terminationDeadline?: string;
  /**
   * Time of the termination request, by a deletion or by the DisruptionTarget condition (ISO 8601).
   */
  readonly terminationRequestedAt?: string;
  /**
   * Reason why a container cannot start now. `store`: the store did not provide the files of
   * earlier steps.
   */
  readonly problem?: {
    readonly kind: 'image_pull' | 'invalid_image' | 'config' | 'store';
    readonly message: string;
    readonly since: string;
    /** Whether it has lasted so long that it counts as a failure. Only in a state for a workflow. */
    readonly persistent?: true;
  };
  /**
   * Reason of the DisruptionTarget condition (EvictionByEvictionAPI, PreemptionByScheduler,
   * DeletionByTaintManager, …).
   */
  readonly disruptionReason?: string;
  /** status.reason of the pod (Evicted, NodeLost, Shutdown, …). */
  readonly reason?: string;
  /** Reason why the scheduler found no node, from the PodScheduled condition. */
  readonly unschedulable?: string;
  /**
   * Whether the runner is registered and listening, for a pod whose probes report it; otherwise
   * `undefined`.
   */
  readonly online?: boolean;
  /** Whether a job is running, for a pod whose probes report it; otherwise `undefined`. */
  readonly busy?: boolean;
  /**
   * Time at which the containers last became ready or not ready (ISO 8601). It distinguishes one
   * change between idle and busy from the next.
   */
  readonly readinessChangedAt?: string;
  /**
   * Whether the runner takes further jobs after a job. Only for a pod whose probes report its
   * state.
   * @default false
   */
  readonly reusable?: true;
  /** Same as {@link PodRequest.notifyBusy}. */
  readonly notifyBusy?: true;
  /**
   * Whether the pod has ended, was busy when it was last observed, and its workflow was not
   * notified of that.
   * @default false
   */
  readonly endedBusy?: true;
  /**
   * Time from which the runner counts as busy if nothing else is reported until then (ISO 8601).
   * Its state is not known yet.
   */
  readonly assumedBusyFrom?: string;
}

/** End of a runner container. */
export interface PodExit {
  /**
   * Exit code as the supervisor recorded it, or else as the kubelet reported it. The record has
   * precedence, because later events in the container are not caused by the command.
   */
  readonly code: number;
  readonly oomKilled: boolean;
  /** Time of the end (ISO 8601). */
  readonly finishedAt?: string;
  readonly message?: string;
  /** Reason why files of a step were not stored completely. `by: step`: the step caused it. */
  readonly uploadFailure?: { readonly by: 'step' | 'store'; readonly why: string };
  /** Record of the supervisor. Absent if there is none or it could not be written. */
  readonly record?: SupervisorRecord;
}

/** Reasons for stopping a command, as the supervisor reports them. */
export const STOP_REASONS = ['timeout', 'cancelled', 'superseded', 'evicted', 'drained'] as const;
/** Reason for stopping a command. */
export type StopReason = (typeof STOP_REASONS)[number];

/**
 * Returns whether a stop for this reason lets a job finish. Every other reason stops the command
 * immediately, however the supervisor receives it.
 */
export const allowsJobToFinish = (reason: StopReason): boolean =>
  reason === 'drained' || reason === 'evicted';

/**
 * Part of the supervisor's termination message on which decisions depend. A job may have forged it,
 * so it only affects decisions about that job.
 */
export interface SupervisorRecord {
  /** Reason for which the command was being stopped when it ended. Absent if it ended by itself. */
  readonly reason?: StopReason;
  /** State of the last job of a CI runner. */
  readonly job?: 'none' | 'running' | 'interrupted' | 'completed';
}
