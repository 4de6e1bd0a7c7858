/** Public names of one runner: the workflow type, its signals, query, updates, status and result. */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';

export const RUNNER_WORKFLOW = 'runner';

/** In the order of a life. */
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
export type RunnerPhase = (typeof RUNNER_PHASES)[number];

/**
 * `succeeded`: its job(s) ran, whatever their conclusion. `failed`: the runner process itself failed.
 * `errored`: infrastructure; page someone. `aborted`: cancelled, superseded, or ended by policy.
 */
export const RUNNER_OUTCOMES = ['succeeded', 'failed', 'errored', 'aborted'] as const;
export type RunnerOutcome = (typeof RUNNER_OUTCOMES)[number];

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

/** `drain`: let the job finish. `stop`: graceful stop of the job within its grace. `force`: now. */
export type CancelMode = 'drain' | 'stop' | 'force';
export interface CancelRequest {
  reason?: string;
  /** @default "stop" */
  mode?: CancelMode;
  /** With the mode `drain`: the verdict is that of the update `drain`, which a runner may refuse, or has no worker for; a signal it gets in any case. */
  planned?: boolean;
  /** What the one who is stopped is told as the reason; anything else: `cancelled`. @default "cancelled" */
  stopReason?: 'timeout' | 'superseded' | 'cancelled';
}

/** A job event about this runner, from the CI server's webhook: an early hint, never the only source. */
export interface RunnerJobEvent {
  action: 'queued' | 'in_progress' | 'completed';
  /** ID of the job at the CI server. */
  jobId: string;
  /** Of the workflow run: a re-run is another job. @default 1 */
  runAttempt?: number;
  /** When the CI server says it happened (ms since the epoch). Absent: events count in the order in which they arrive. */
  at?: number;
  /** ID of the registration at the CI server. */
  runnerId?: string;
  runnerName?: string;
  /** `owner/repo`: an event of a repository that is not in the runner's scope is of another runner of that name. Absent: not compared. */
  repository?: string;
  /** Shown to people; never used for a decision. */
  jobName?: string;
  /** How a completed job ended, in the CI server's words (`success`, `failure`, `cancelled`, …). */
  conclusion?: string;
}

export interface PodStateEvent {
  uid: string;
  state: 'idle' | 'busy';
  /** Busy as before, but it was idle in between: what runs is another job. */
  newJob?: true;
  /** For how long it has been so, where that was not told at once (ms). @default 0 */
  durationMs?: number;
}

/** Somebody who sees what the life does not has found its runner to be of no use. */
export interface ReplaceIdleRequest {
  /** At the CI server: another runner of this life is not meant. */
  runnerName: string;
  /** For people. */
  reason: string;
}

export interface RunnerStatus {
  phase: RunnerPhase;
  runnerName: string;
  /** ID of the registration at the CI server. */
  runnerId?: string;
  pod?: string;
  podUid?: string;
  node?: string;
  job?: string;
  /** 1 for the first runner of this life, +1 for each replacement. */
  attempt: number;
  waitingFor?: string;
  /** ISO 8601. */
  waitingUntil?: string;
  cancel?: { mode: CancelMode; reason: string };
  unregisterAttempts: number;
  phases: { phase: RunnerPhase; at: string }[];
  /** The runners that this life has lost and replaced, oldest first. */
  replacements: { runnerName: string; cause: RunnerCause; replacedBy: string }[];
}

export interface RunnerResult {
  outcome: RunnerOutcome;
  cause?: RunnerCause;
  /** One sentence for people. */
  message: string;
  runnerName: string;
  /** ID of the registration at the CI server. */
  runnerId?: string;
  exitCode?: number;
  attempt: number;
  unregisterAttempts: number;
  phases: { phase: RunnerPhase; at: string }[];
  replacements: { runnerName: string; cause: RunnerCause; replacedBy: string }[];
  /** Id of the workflow that goes on removing the registration. */
  deregistrationWorkflowId?: string;
}

/** Body: nothing, `"reason"`, or `{reason, mode, retire, by}`; without a mode: stop. A stronger one upgrades; a weaker one never downgrades. */
export const cancelSignal = defineSignal<[(CancelRequest | string)?]>('cancel');
export const jobEventSignal = defineSignal<[RunnerJobEvent]>('jobEvent');
export const podStateSignal = defineSignal<[PodStateEvent]>('podState');
/** Has another runner of the life take the place of an idle one; a busy one is left alone. */
export const replaceIdleSignal = defineSignal<[ReplaceIdleRequest]>('replaceIdle');
export const statusQuery = defineQuery<RunnerStatus>('status');
export const drainUpdate = defineUpdate<
  { accepted: true; phase: RunnerPhase },
  [{ reason?: string }?]
>('drain');
/** Extends the job's deadline. */
export const extendDeadlineUpdate = defineUpdate<{ jobDeadline: string }, [{ by: string }]>(
  'extendDeadline',
);
