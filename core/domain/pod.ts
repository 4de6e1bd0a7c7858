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
 * Identity of one runner of one life: everything that is created for it is named from a hash of these three,
 * so that a retried activity finds what an earlier try made.
 */
export interface RunnerIdentity {
  readonly workflowId: string;
  /** First execution run id: stable across continue-as-new and resets. */
  readonly firstRunId: string;
  /** 1 for the first runner of the life, +1 for each replacement. */
  readonly attempt: number;
  /**
   * ID of the workflow's Temporal namespace. Names are the same without it; it is noted on what is
   * created, for the sweep of an installation that uses another Temporal.
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
  /** A PodTemplateSpec fragment merged under what Holdfast sets; its container `runner` is the runner's. */
  readonly template?: PodTemplate;
  readonly proxy?: RunnerProxy;
  readonly ca?: CertificateAuthority;
  readonly labels: Readonly<Record<string, string>>;
  readonly terminationGracePeriodSeconds: number;
  /** Absent: the command runs bare. */
  readonly supervision?: SupervisorConfig;
  /** @default none */
  readonly volumeClaims?: readonly VolumeClaim[];
  /** Of a job's step. @default nothing of it is kept */
  readonly storage?: StorageRequest;
  /** It runs what an outsider has written: whatever the policy allows, nothing of others' is for it. */
  readonly untrusted?: true;
  /** Its set waits for the word that it is busy: it is told at once. */
  readonly notifyBusy?: true;
  /** How long a job of this runner may take at most, in ms: noted on the pod, for when nobody is left who knows. */
  readonly jobTimeoutCapMs?: number;
}

/** Where what a step leaves is kept; see core/domain/artifactLayout.ts. */
export interface StorageRequest {
  /** Of the step, all its attempts. */
  readonly path: string;
  /** Keys of the snapshots that SHARED_DIR may begin with besides those of earlier attempts, the best first. */
  readonly sharedDirSources: readonly string[];
  /** How long storing is tried, from the step's end. */
  readonly timeoutMs: number;
}

/** How the supervisor runs the command; see docs/supervisor.md. Durations in ms. */
export interface SupervisorConfig {
  /** How it gets to be the container's first process. Absent: as this compute does it. */
  readonly mode?: 'inject' | 'image' | 'none';
  /** Kind of the runner that the supervisor watches. */
  readonly runnerKind: RunnerKindName;
  /** A runner that takes one job only: once busy, it does not come back. */
  readonly ephemeral: boolean;
  readonly onTerm: 'drain' | 'stop' | 'checkpoint';
  readonly drainTimeoutMs: number;
  readonly signalTimeoutMs: number;
  readonly cleanupTimeoutMs: number;
  /** A sequence in place of the one signal. */
  readonly signals?: string;
  /** Who gets a stop's signals. */
  readonly signalTarget: SignalTarget;
  readonly cleanupCommand?: readonly string[];
  /** How long a plain command may run. Absent: the supervisor keeps no timeout. */
  readonly timeoutMs?: number;
  /** How long the command may take to be up (a runner: online); the startup probe gives up a minute later. */
  readonly startupTimeoutMs: number;
}

/** Name of the volume claim that holds the state of a workload from one attempt to the next: `HOLDFAST_STATE_DIR`. */
export const STATE_CLAIM = 'state';

/** A pod that nobody saw end, and the node from which it may still write to its claims. */
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

/** A pod, and the workflow whose runner has to be in it. */
export interface OwnedPodRef extends PodRef {
  /** ID of the workflow that the pod has to be marked with. A pod of any other is left alone. */
  readonly workflowId: string;
}

/** The fields of a pod that decisions need, at one moment. */
export interface PodView extends PodSnapshot {
  readonly workflowId: string;
}

/** As its own life sees it. */
export interface PodSnapshot extends PodRef {
  /** A node was chosen. */
  readonly scheduled: boolean;
  readonly node?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** When the runner container started (ISO 8601); absent if it never did. */
  readonly startedAt?: string;
  /** The runner container has an exit code and nothing of it is being stored any more, the pod's phase is final, or the pod (this UID) is gone. */
  readonly ended: boolean;
  /** The runner container has ended, and what it left is being stored: for so long that is waited for (ISO 8601). */
  readonly uploadingUntil?: string;
  /** The pod (this UID) does not exist any more. */
  readonly deleted: boolean;
  /** Nobody saw it go: it may have started since it was seen last. */
  readonly endUnobserved?: true;
  /** How the runner container ended, if that is known. */
  readonly exit?: PodExit;
  /** deletionTimestamp is set: the pod has got its SIGTERM. */
  readonly terminating: boolean;
  /** When the grace of a terminating pod is over (ISO 8601). */
  readonly terminationDeadline?: string;
  /** When it was told to go, by a deletion or by the DisruptionTarget condition (ISO 8601). */
  readonly terminationRequestedAt?: string;
  /** Why the container cannot start, while that is so; `store`: the store did not give what the steps before have left. */
  readonly problem?: {
    readonly kind: 'image_pull' | 'invalid_image' | 'config' | 'store';
    readonly message: string;
    readonly since: string;
  };
  /** The DisruptionTarget condition's reason (EvictionByEvictionAPI, PreemptionByScheduler, DeletionByTaintManager, …). */
  readonly disruptionReason?: string;
  /** The pod's status.reason (Evicted, NodeLost, Shutdown, …). */
  readonly reason?: string;
  /** Why the scheduler found no node, from the PodScheduled condition. */
  readonly unschedulable?: string;
  /** Only for a pod whose probes tell: registered and listening. `undefined`: this pod does not tell. */
  readonly online?: boolean;
  /** Only for a pod whose probes tell: a job is running. `undefined`: this pod does not tell. */
  readonly busy?: boolean;
  /** When its containers last became ready, or ceased to be (ISO 8601): what tells one change between idle and busy from the next. */
  readonly readinessChangedAt?: string;
  /** Only for a pod whose probes tell: it takes another job after one. */
  readonly reusable?: true;
  /** As of the request. */
  readonly notifyBusy?: true;
  /** Of one that has ended: it was busy when it was last seen to live, which nobody was told. */
  readonly endedBusy?: true;
  /** It is not known yet whether it is busy: it is from then on if nothing else is told (ISO 8601). */
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
  /** ISO 8601. */
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
 * Returns whether a stop for this reason lets a job finish. Every other reason stops the command at
 * once, however it reaches the supervisor.
 */
export const allowsJobToFinish = (reason: StopReason): boolean =>
  reason === 'drained' || reason === 'evicted';

/** The part of the supervisor's termination message that decisions need. A job may have forged it: it decides about that job alone. */
export interface SupervisorRecord {
  /** Why the command was being stopped when it ended; absent: it ended by itself. */
  readonly reason?: StopReason;
  /** The last job of a CI runner. */
  readonly job?: 'none' | 'running' | 'interrupted' | 'completed';
}
