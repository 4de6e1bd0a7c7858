/** Public names of one runner: the workflow type, its signals, query, updates, input, status and result. */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';

export const RUNNER_WORKFLOW = 'runner';

/** Type of the failure with which a runner that is being torn down refuses the update `drain`. */
export const RUNNER_LEAVES_ALREADY = 'RunnerLeavesAlready';

export type RunnerPhase =
  | 'Requested'
  | 'Provisioning'
  | 'Registering'
  | 'Idle'
  | 'Busy'
  | 'Draining'
  | 'Unregistering'
  | 'TearingDown'
  | 'Gone';

/**
 * `succeeded`: its job(s) ran, whatever their conclusion. `failed`: the runner process itself failed.
 * `errored`: infrastructure; page someone. `aborted`: cancelled, superseded, or ended by policy.
 */
export type RunnerOutcome = 'succeeded' | 'failed' | 'errored' | 'aborted';

export const RUNNER_CAUSES = [
  'evicted',
  'preempted',
  'node_lost',
  'node_shutdown',
  'oom_killed',
  'image_pull',
  'unschedulable',
  'pending_timeout',
  'never_registered',
  'run_timeout',
  'idle_timeout',
  'agent_lost',
  'deleted_externally',
  'superseded',
  'cancelled',
  'quota_exceeded',
  'runner_deprecated',
  'credentials',
  'ci_server_unreachable',
] as const;
export type RunnerCause = (typeof RUNNER_CAUSES)[number];

/** Input of the `runner` workflow: one JSON object. Durations are strings such as `30s`, `10m`, `1h30m`. */
export interface RunnerInput {
  /** Prefix of the runner's name at the CI server; a hash of this execution is appended. Default: the workflow id without `runner-`. */
  name?: string;
  /** `none`: a plain command (`command`) that no CI server knows; it has every other part of the life. @default "github" */
  ciServer?: 'github' | 'none';
  /** Exactly one of these three; none with `ciServer: none`. */
  organization?: string;
  /** `owner/repo`. */
  repository?: string;
  enterprise?: string;
  /** A credential named in the worker's config. @default "default" */
  credential?: string;
  /** Numeric id of the runner group. @default 1 */
  runnerGroupId?: number;
  /** 1 to 100. @default ["self-hosted"] */
  labels?: string[];
  /** One job, then gone; `false`: a static runner, which takes many. @default true */
  ephemeral?: boolean;
  /** Name of the set this runner belongs to. */
  set?: string;
  /** Kubernetes namespace of the pod. Default: the worker's. */
  namespace?: string;
  /** Image of the runner container. Default: the worker's. */
  image?: string;
  command?: string[];
  args?: string[];
  env?: Record<string, string>;
  /** PodTemplateSpec fragment; the container named `runner` is the runner's. */
  pod?: { metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }; spec?: Record<string, unknown> };
  /**
   * How the supervisor gets to be the first process of the container: `inject` copies it in (needs the command to be known),
   * `image`: the image's own entry point starts it, `none`: the command runs bare. Default: the worker's.
   */
  supervisor?: SupervisorMode;
  /** Persistent volumes of the runner container. */
  volumeClaims?: VolumeClaim[];
  timeouts?: {
    /** For registration, Secret and pod together, retries included. @default "1h" */
    provisioning?: string;
    /** From the pod's creation. @default "5m" */
    podUnscheduled?: string;
    /** From the pod's creation. @default "10m" */
    podPending?: string;
    /** From the container's start. @default "10m" */
    registration?: string;
    /** From Idle; off when absent. */
    idle?: string;
    /** From Busy. @default "24h", which is also the cap */
    jobTimeout?: string;
  };
  /** The grace ledger, additive; the pod's terminationGracePeriodSeconds is derived from it. */
  stop?: {
    /** With `onTerm: drain`: how long the job may go on after SIGTERM. */
    drainTimeout?: string;
    /** From the stop's signal to SIGKILL. @default "10s" */
    signalTimeout?: string;
    /** On top: for the records and the cleanup command. @default "5s" */
    cleanupTimeout?: string;
    /** Runs in the container after the end, with HOLDFAST_STOP_REASON, for at most `cleanupTimeout`. */
    cleanupCommand?: string[];
    /** Instead of the one signal received, a sequence: `SIGINT,SIGTERM@5s`, counted from the stop's start. */
    signals?: string;
  };
  /** What SIGTERM means inside the pod. `checkpoint` needs `onEviction: resume`. @default "stop" */
  onTerm?: OnTerm;
  /** What becomes of the life when a busy runner loses its pod. `resume` needs `ciServer: none`. @default "fail" */
  onEviction?: OnEviction;
  /** Pace of re-checks; the defaults are right for production. */
  intervals?: RunnerIntervals;
}

export type SupervisorMode = 'inject' | 'image' | 'none';
/** `drain`: the job may finish within `stop.drainTimeout`; `stop`: signal, grace, kill; `checkpoint`: as stop, and the next attempt goes on. */
export type OnTerm = 'drain' | 'stop' | 'checkpoint';
/** `fail`: a job is not idempotent; `replace`: a new runner; `resume`: the same work again, with the state of the attempt before. */
export type OnEviction = 'fail' | 'replace' | 'resume';

/** A PersistentVolumeClaim mounted into the runner container. The one called `state` is `HOLDFAST_STATE_DIR`. */
export interface VolumeClaim {
  name: string;
  /** Absolute path in the container. */
  mountPath: string;
  /** Name of the claim, which outlives this runner. Absent: one of this life's own, which goes with it. */
  claim?: string;
  /** Size, such as `10Gi`: the claim is made where it does not exist yet. */
  storage?: string;
  /** Default: the cluster's. */
  storageClass?: string;
  /** @default ["ReadWriteOnce"] */
  accessModes?: string[];
}

export interface RunnerIntervals {
  /** How often a wait for the pod looks live again. @default "10m" */
  resync?: string;
  /** Between two DELETEs of a busy static runner. @default "1m" */
  busyRetry?: string;
  /** Safety re-check of a busy ephemeral runner. @default "10m" */
  busyRecheck?: string;
  /** Between two looks for a runner that may be about to register. @default "10s" */
  absentRecheck?: string;
  /** Between two tries with a refused credential. @default "5m" */
  credentialsRetry?: string;
  /** Between two looks for a runner that is coming online; doubles up to 30 s. @default "2s" */
  onlineLookup?: string;
  /** How long a runner that was never seen online may take to end after its registration was removed. @default "2m" */
  removalSettle?: string;
  /** How long a runner whose registration is gone has to go on saying that it is idle, before its pod goes. @default "3s" */
  idleConfirm?: string;
  /** How long a stop waits for the CI server's first answer before it stops the pod anyway. @default "30s" */
  stopPatience?: string;
  /** How long the answers "provisioned" and "deleted" may wait for "online" and "gone"; 10 s at most. @default "5s" */
  heldBack?: string;
}

/** `drain`: let the job finish. `stop`: graceful stop of the job within its grace. `force`: now. */
export type CancelMode = 'drain' | 'stop' | 'force';
export interface CancelRequest {
  reason?: string;
  /** @default "stop" */
  mode?: CancelMode;
}

/** A job event about this runner, from the CI server's webhook: an early hint, never the only source. */
export interface CiEvent {
  action: 'queued' | 'in_progress' | 'completed';
  jobId: number;
  runnerId?: number;
  runnerName?: string;
  /** Shown to people; never used for a decision. */
  jobName?: string;
  /** How a completed job ended, in the CI server's words (`success`, `failure`, `cancelled`, …). */
  conclusion?: string;
}

export interface PodStateEvent {
  uid: string;
  state: 'idle' | 'busy';
}

export interface RunnerStatus {
  phase: RunnerPhase;
  runnerName: string;
  runnerId?: number;
  pod?: string;
  podUid?: string;
  node?: string;
  job?: string;
  /** 1 for the first runner of this life, +1 for each replacement. */
  attempt: number;
  waitsFor?: string;
  /** ISO 8601. */
  waitsUntil?: string;
  cancel?: { mode: CancelMode; reason: string };
  unregisterAttempts: number;
  phases: { phase: RunnerPhase; at: string }[];
  /** The runners that this life has lost and replaced, oldest first. */
  replaced: { runnerName: string; cause: RunnerCause; replacedBy: string }[];
}

export interface RunnerResult {
  outcome: RunnerOutcome;
  cause?: RunnerCause;
  /** One sentence for people. */
  message: string;
  runnerName: string;
  runnerId?: number;
  exitCode?: number;
  attempt: number;
  unregisterAttempts: number;
  phases: { phase: RunnerPhase; at: string }[];
  replaced: { runnerName: string; cause: RunnerCause; replacedBy: string }[];
  /** Id of the workflow that goes on removing the registration. */
  deregistration?: string;
}

/** Body: nothing, `"reason"`, or `{reason, mode}`; without a mode: stop. A stronger one upgrades; a weaker one never downgrades. */
export const cancelSignal = defineSignal<[(CancelRequest | string)?]>('cancel');
export const ciEventSignal = defineSignal<[CiEvent]>('ciEvent');
export const podStateSignal = defineSignal<[PodStateEvent]>('podState');
export const statusQuery = defineQuery<RunnerStatus>('status');
export const drainUpdate = defineUpdate<{ accepted: true; phase: RunnerPhase }, [{ reason?: string }?]>('drain');
/** Extends the job's deadline. */
export const extendDeadlineUpdate = defineUpdate<{ jobDeadline: string }, [{ by: string }]>('extendDeadline');
