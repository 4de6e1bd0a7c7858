/**
 * Public names of the `runner` workflow: its workflow type, signals, query, updates, status and
 * result.
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';

/** Workflow type of one runner, from its registration to the deletion of its pod. */
export const RUNNER_WORKFLOW = 'runner';

/**
 * Phases of a runner, in their order. A phase without anything to wait for may be skipped. They are
 * the values of the search attribute `RunnerPhase`.
 */
export const RUNNER_PHASES = [
  'Requested',
  'Provisioning',
  'Registering',
  'Idle',
  'Busy',
  'Draining',
  'Unregistering',
  'TearingDown',
  'Gone',
] as const;
/** Phase of a runner. */
export type RunnerPhase = (typeof RUNNER_PHASES)[number];

/**
 * Outcomes of a runner. `succeeded`: its jobs ran, whatever their conclusion. `failed`: the runner
 * process itself failed. `errored`: infrastructure; someone must act. `aborted`: cancelled,
 * superseded, or ended by policy.
 */
export const RUNNER_OUTCOMES = ['succeeded', 'failed', 'errored', 'aborted'] as const;
/** Outcome of a runner or a job. */
export type RunnerOutcome = (typeof RUNNER_OUTCOMES)[number];

/** Causes of an outcome. docs/lifecycle.md says which outcomes each of them can have. */
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
  'pod_rejected',
  'runner_deprecated',
  'credentials',
  'ci_server_unreachable',
] as const;
/** Cause of an outcome. */
export type RunnerCause = (typeof RUNNER_CAUSES)[number];

/**
 * How a runner ends. `drain`: its job may finish. `stop`: its job is stopped within its grace
 * period. `force`: it is killed at once.
 */
export type CancelMode = 'drain' | 'stop' | 'force';
/** Body of the signal `cancel`. */
export interface CancelRequest {
  /** Reason to show in the status and the result; at most 500 characters. */
  reason?: string;
  /** @default "stop" */
  mode?: CancelMode;
  /**
   * Whether the result is that of a planned drain (`succeeded`) instead of `aborted`. Only with the
   * mode `drain`. Unlike the update `drain`, a signal needs no running worker and cannot be
   * rejected.
   */
  planned?: boolean;
  /**
   * Stop reason that the command receives. Any other value counts as `cancelled`.
   * @default "cancelled"
   */
  stopReason?: 'timeout' | 'superseded' | 'cancelled';
}

/**
 * Job event about this runner, from the CI server's webhook. It is an early hint, never the only
 * source.
 */
export interface RunnerJobEvent {
  action: 'queued' | 'in_progress' | 'completed';
  /** ID of the job at the CI server. */
  jobId: string;
  /** Attempt of the workflow run at the CI server. A re-run is a different job. @default 1 */
  runAttempt?: number;
  /**
   * Time of the event according to the CI server (ms since the epoch). If absent, events count in
   * the order in which they arrive.
   */
  at?: number;
  /** ID of the registration at the CI server. */
  runnerId?: string;
  runnerName?: string;
  /**
   * Repository of the job, `owner/repo`. An event from a repository outside the runner's scope is
   * about another runner with the same name. If absent, it is not compared.
   */
  repository?: string;
  /** Name of the job, for display only. */
  jobName?: string;
  /**
   * Conclusion of a completed job as the CI server states it (`success`, `failure`, `cancelled`,
   * …).
   */
  conclusion?: string;
}

/**
 * Body of the signal `podState`: whether the runner in a pod is idle or busy, according to the
 * pod's probes.
 */
export interface PodStateEvent {
  /** UID of the pod. An event for any other pod is ignored. */
  uid: string;
  state: 'idle' | 'busy';
  /** Whether the runner was idle in between, so that the job now running is a new one. */
  newJob?: true;
  /** Time for which the state had lasted when the signal was sent (ms). @default 0 */
  durationMs?: number;
}

/** Body of the signal `replaceIdle`, for a runner that is idle but does not work. */
export interface ReplaceIdleRequest {
  /**
   * Name of the runner at the CI server. A request for an earlier runner of this workflow is
   * ignored.
   */
  runnerName: string;
  /** Reason to show in the status and the result. */
  reason: string;
}

/** Status of a runner, as the query `status` returns it. */
export interface RunnerStatus {
  phase: RunnerPhase;
  /** Name of the runner at the CI server. Empty until the input has been checked. */
  runnerName: string;
  /** ID of the registration at the CI server. */
  runnerId?: string;
  /** Name of the current pod. */
  pod?: string;
  podUid?: string;
  node?: string;
  job?: string;
  /**
   * Number of the current runner of this workflow: 1 for the first one, +1 for each replacement.
   */
  attempt: number;
  /** Condition that the workflow waits for, if any. */
  waitingFor?: string;
  /** Deadline of that wait (ISO 8601), if it has one. */
  waitingUntil?: string;
  /** Strongest request to end the runner early, from a user or a policy. */
  cancel?: { mode: CancelMode; reason: string };
  /** Number of requests to the CI server to remove the registration. */
  unregisterAttempts: number;
  /** Phases so far, with the time at which each began (ISO 8601). */
  phases: { phase: RunnerPhase; at: string }[];
  /** Runners that this workflow has lost and replaced, oldest first. */
  replacements: RunnerReplacement[];
}

/** A runner that was lost and replaced. */
export interface RunnerReplacement {
  /** Name of the lost runner at the CI server. */
  runnerName: string;
  cause: RunnerCause;
  /** Name of the next runner. */
  replacedBy: string;
  /** Id of the `rerun` workflow of its job, if it was to run again. */
  rerunWorkflowId?: string;
}

/** Result of the `runner` workflow. */
export interface RunnerResult {
  outcome: RunnerOutcome;
  cause?: RunnerCause;
  /** Result in one sentence. */
  message: string;
  runnerName: string;
  /** ID of the registration at the CI server. */
  runnerId?: string;
  /** Exit code of the runner container, if it is known. */
  exitCode?: number;
  /** Number of runners that the workflow has had. */
  attempt: number;
  /** Number of requests to the CI server to remove the registration. */
  unregisterAttempts: number;
  /** Phases with the time at which each began (ISO 8601). */
  phases: { phase: RunnerPhase; at: string }[];
  /** Runners that this workflow lost and replaced, oldest first. */
  replacements: RunnerReplacement[];
  /**
   * Id of the `deregistration` workflow that keeps trying to remove the registration. Absent if the
   * registration is gone.
   */
  deregistrationWorkflowId?: string;
  /** Id of the `rerun` workflow of the job that was lost with the last runner, if there is one. */
  rerunWorkflowId?: string;
}

/**
 * Signal that ends a runner. Its body is empty, `"reason"`, or a {@link CancelRequest}. Without a
 * mode it is a `stop`. A stronger mode replaces a weaker one; a weaker one is ignored.
 */
export const cancelSignal = defineSignal<[(CancelRequest | string)?]>('cancel');
/** Signal with a job event of the CI server about this runner. */
export const jobEventSignal = defineSignal<[RunnerJobEvent]>('jobEvent');
/**
 * Signal with the state of the runner in its pod. It is a hint: a live read of the pod overrides
 * it.
 */
export const podStateSignal = defineSignal<[PodStateEvent]>('podState');
/**
 * Signal that replaces an idle runner with a new one of the same workflow. A busy runner is left
 * alone.
 */
export const replaceIdleSignal = defineSignal<[ReplaceIdleRequest]>('replaceIdle');
/** Returns the current status of a runner. */
export const statusQuery = defineQuery<RunnerStatus>('status');
/**
 * Update that drains a runner: its job may finish, and it takes no other. Rejected once the runner
 * is TearingDown or Gone.
 */
export const drainUpdate = defineUpdate<
  { accepted: true; phase: RunnerPhase },
  [{ reason?: string }?]
>('drain');
/**
 * Update that extends the deadline of the running job by a duration, up to the cap `jobTimeoutCap`.
 * Rejected if no job is running, and for a plain command under the supervisor, which keeps the
 * timeout itself.
 */
export const extendDeadlineUpdate = defineUpdate<{ jobDeadline: string }, [{ by: string }]>(
  'extendDeadline',
);
