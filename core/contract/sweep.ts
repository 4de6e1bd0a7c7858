/**
 * Public names of the `sweep` workflow, which finds and repairs orphaned or stuck workflows, pods
 * and registrations: its input and its report.
 */
import type { Durations } from '../domain/duration.ts';

/** Workflow type of a sweep. */
export const SWEEP_WORKFLOW = 'sweep';

/** Reason for stopping a pod whose runner workflow has ended. */
export const ORPHANED_POD_MESSAGE =
  'the runner was still alive although its workflow had ended; forced to fail';
/** Reason for terminating a runner workflow whose pod is gone and which no worker has resumed. */
export const STUCK_RUNNER_MESSAGE = 'worker never came back; forced to fail';

/** Reason for stopping a job step whose job has ended. */
export const ORPHANED_STEP_MESSAGE = 'the step was still alive although its job had ended; stopped';

/** Reason for replacing a runner that reports itself idle but is offline at the CI server. */
export const UNRESPONSIVE_RUNNER_MESSAGE =
  'the CI server shows it offline, while its pod is online and idle';

/** Kinds of findings that a sweep repairs. */
export const FINDING_KINDS = [
  'orphaned_pod',
  'orphaned_registration',
  'stuck_runner',
  'unresponsive_runner',
  'orphaned_step',
  'expired_pod',
  'orphaned_resource',
] as const;
/** Kind of finding that a sweep repairs. */
export type FindingKind = (typeof FINDING_KINDS)[number];

/** Reasons for leaving a checked object alone. */
export const SWEEP_SKIPS = [
  /** It is younger than `minAge`, or its workflow ended less than that ago. */
  'too_young',
  /** It has the annotation `holdfast.dev/hold`. */
  'on_hold',
  /** It is starting, ending or being evicted. */
  'in_transition',
  /** No worker polls for its workflow now, and its pod still runs, possibly with a job. */
  'no_worker',
  /** Its workflow has lost its pod and continues with a new one once a worker is back. */
  'will_resume',
  /** Its workflow is paused in Temporal (`temporal workflow pause`). */
  'paused',
  /** It finished normally and is kept until it is `maxPodAge` old. */
  'retained',
  /**
   * It is a claim named in a runner's input, such as that of a set's volume slot, and outlives its
   * runners.
   */
  'shared_claim',
  /**
   * It is a Secret or claim that a pod still uses, or an object of a job whose runner still exists.
   */
  'in_use',
  /** Its workflow is in a different Temporal namespace: see `otherTemporal` in the report. */
  'other_temporal',
  /**
   * It is a registration or a job's object that cannot be proven to belong to this installation.
   */
  'foreign',
  /** It is a registration whose runner is online or busy. */
  'online_or_busy',
  /**
   * It is an idle runner that the CI server reports offline, like more than half of its scope. The
   * CI server or the connection to it is at fault.
   */
  'mass_offline',
  /** A `deregistration` workflow is removing it. */
  'handed_off',
  /**
   * It is in a scope of runners without pod and Secret, and the credential cannot see that scope.
   */
  'scope_not_visible',
  /** It is a running workflow older than `maxRunnerAge`. Its own `timeouts` end it. */
  'long_running',
  /** A second check of live sources did not confirm the finding. */
  'changed',
  /** The sweep reached its maximum number of repairs. */
  'deferred',
] as const;
/** Reason for leaving a checked object alone. */
export type SweepSkip = (typeof SWEEP_SKIPS)[number];

/** Time limits of a sweep. The defaults are right for production. */
export const SWEEP_LIMITS = {
  /** Minimum age of an object; younger ones are left alone. @default "30s" */
  minAge: '30s',
  /** Maximum age of the pod of a runner that finished normally. @default "24h" */
  maxPodAge: '24h',
  /** Age from which running workflows are counted in the report. @default "7d" */
  maxRunnerAge: '7d',
  /**
   * Maximum age of the CI server's lists. A registration is not removed before this much time has
   * passed since it was marked.
   * @default "1m"
   */
  listMaxAge: '1m',
  /**
   * Minimum time between marking an idle runner as offline at the CI server and replacing it.
   * @default "4m"
   */
  unresponsiveAfter: '4m',
  /**
   * Time without a worker on a stuck runner's task queues after which its workflow is terminated.
   * @default "6h"
   */
  terminateAfter: '6h',
} as const;

/** Input of the `sweep` workflow. */
export interface SweepInput extends Durations<typeof SWEEP_LIMITS> {
  /** Whether to report findings without marking or repairing anything. @default false */
  dryRun?: boolean;
  /**
   * Whether to continue where a sweep would stop: if it found more than half of ten or more pods
   * orphaned or expired, or if Temporal has no record of a runner in this location.
   * @default false
   */
  force?: boolean;
  /**
   * ID of a Temporal namespace that no longer exists, or an earlier ID of this one. Its objects are
   * swept as those of this installation, including running pods.
   */
  takeOver?: string;
  /** Additional scopes at the CI server to check, beyond those of the known workflows and pods. */
  scopes?: SweepScope[];
}

/**
 * Scope at the CI server. Exactly one of `organization`, `repository` and `enterprise` must be set.
 */
export interface SweepScope {
  organization?: string;
  /** `owner/repo`. */
  repository?: string;
  enterprise?: string;
  /** Credential from the worker's settings. @default "default" */
  credential?: string;
}

/**
 * Mark of a finding that cannot carry one itself: a registration or a workflow. Pods, Jobs, Secrets
 * and claims carry theirs in the annotation `holdfast.dev/sweep-mark`.
 */
export interface SweepMark {
  kind: 'orphaned_registration' | 'stuck_runner' | 'unresponsive_runner' | 'orphaned_step';
  /**
   * Subject of the finding: `organization acme#17`, a runner's name, or a workflow id and its run
   * id.
   */
  key: string;
  /** Time at which it was first found (ISO 8601). */
  since: string;
  /** Time since which no sweep has seen a worker on a stuck runner's task queues (ISO 8601). */
  unpolledSince?: string;
}

/** Finding, and the action taken. */
export interface SweepFinding {
  kind: FindingKind;
  /** Name of the object, runner or workflow. */
  name: string;
  /** Kubernetes namespace, scope such as `organization acme`, or task queue of the finding. */
  location: string;
  /** Reason in one sentence. */
  reason: string;
  /**
   * `found`: in a dry run, or when the sweep stopped. `marked`: found for the first time. `waits`:
   * marked before but not due for repair yet, such as a stuck runner that was signaled or a
   * registration in a list that may be old.
   */
  status: 'found' | 'marked' | 'waits' | 'repaired' | 'failed';
  /** Workflow of a stuck runner, or the workflow that a pod belonged to. */
  workflowId?: string;
  /**
   * Error of a failed repair. If `repaired`: work that continues, such as a busy registration that
   * was handed off.
   */
  note?: string;
}

/** Numbers of findings of one kind, by status. */
export interface SweepCounts {
  found: number;
  marked: number;
  repaired: number;
  failed: number;
}

/** Result of the `sweep` workflow, and output of `holdfast sweep`. */
export interface SweepReport {
  /** Location that was swept: `compute/cluster/installation/namespace`. */
  location: string;
  /** Start of the sweep (ISO 8601). */
  at: string;
  /** Duration of the sweep (ms). */
  tookMs: number;
  dryRun: boolean;
  /** Numbers of checked objects. An absent number could not be determined. */
  examined: {
    runners?: number;
    pods?: number;
    secrets?: number;
    claims?: number;
    scopes?: number;
    registrations?: number;
  };
  /** Lists that could not be read, or not completely. If there is one, nothing was changed. */
  incompleteLists: { list: string; reason: string }[];
  /**
   * Lists that this process is not allowed to read and can do without: Secrets (those of jobs are
   * listed separately) and claims, for a worker.
   */
  skippedLists: { list: string; reason: string }[];
  /** Reason why nothing was changed although all lists were complete. */
  aborted?: string;
  counts: Record<FindingKind, SweepCounts>;
  /** Numbers of objects left alone, by reason. */
  skipped: Partial<Record<SweepSkip, number>>;
  /**
   * Numbers of pods, Secrets and claims whose workflows are in another Temporal namespace, by its
   * ID.
   */
  otherTemporal?: { namespaceId: string; objects: number }[];
  /** Findings, failed ones first; at most 200. */
  findings: SweepFinding[];
  /** Number of findings beyond those. */
  omittedFindings: number;
  /** Marks for the next sweep; at most 500. */
  marks: SweepMark[];
}
