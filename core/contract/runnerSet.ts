/** Public names of runner sets: the workflow type, its signals, query, updates and status. */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { RunnerCause, RunnerOutcome } from './runner.ts';
import type { RunnerSetInput, SetScale } from './runnerSetInput.ts';

export const RUNNER_SET_WORKFLOW = 'runnerSet';

/** Workflow id of a set: one per name. */
export const setWorkflowId = (name: string): string => `set-${name}`;

/** One event of one job, as a set hears of it. Times are the CI server's own, ms since the epoch. */
export interface JobEvent {
  action: 'queued' | 'in_progress' | 'completed';
  jobId: number;
  /** Of the workflow run: a re-run is another job. */
  runAttempt: number;
  /** `owner/repo`. */
  repository: string;
  labels: string[];
  /** When GitHub says it happened: created_at, started_at or completed_at. */
  at: number;
  runnerName?: string;
  conclusion?: string;
}

/** What a runner tells the set it belongs to. */
export interface RunnerNews {
  workflowId: string;
  runnerName: string;
}
export interface RunnerEndedNews extends RunnerNews {
  outcome: RunnerOutcome;
  cause?: RunnerCause;
  /** It was online at some time. */
  wasOnline: boolean;
  /** It ran a job. */
  ranJob: boolean;
}

export interface SetRunnerStatus {
  workflowId: string;
  runnerName?: string;
  /** Hash of the template it was started with. */
  generation: string;
  state: 'starting' | 'idle' | 'busy' | 'draining';
  held: boolean;
  /** ISO 8601. */
  startedAt: string;
  slot?: number;
  /** The set has asked it to drain, and it does not say that it does: when last (ISO 8601), and how often. */
  asked?: { at: string; times: number };
}

export interface RunnerSetStatus {
  name: string;
  /** Hash of the template of now. */
  generation: string;
  desired: number;
  /** Idle runners kept ready, or the fixed number. */
  min: number;
  /** Runners at the most; of a fixed number with those that are started ahead. */
  max: number;
  /** The fixed number; absent: the set follows demand. */
  replicas?: number;
  /** Successors that are started ahead, at the most. Absent: none. */
  warm?: number;
  runners: SetRunnerStatus[];
  jobs: { queued: number; assigned: number; startedTotal: number; completedTotal: number };
  /** Why no runner is started now, if so: `paused`, `never_registered ×2`, `runner_deprecated`, a failed create, … */
  paused?: string;
  /** Until when, or for what, fewer runners are kept or started than wanted (scale-down delay, recreation guard, schedule). */
  waitsFor?: string;
  /** The set was told to end, and ends when its runners have left; why, or `''`. */
  ending?: string;
  labels: string[];
  scope: string;
  /** An organization and an enterprise may have the same name. Absent: an organization, or with a `/` in `scope` a repository. */
  scopeKind?: ScopeKind;
  holds: string[];
}

export type ScopeKind = 'organization' | 'repository' | 'enterprise';

/**
 * Which jobs a set is for, as a memo of its workflow under {@link SET_COVER_MEMO}: so the webhook finds it in the one list of all sets,
 * also while no worker can answer a query. Without the memo the `status` query is asked.
 */
export interface SetCover {
  labels: string[];
  scope: string;
  scopeKind: ScopeKind;
}
export const SET_COVER_MEMO = 'covers';

/** What a set notes at each runner that it starts, as a memo of the runner's workflow under {@link SET_RUNNER_MEMO}. */
export interface SetRunnerMemo {
  /** Hash of its template. */
  generation: string;
  ephemeral: boolean;
  slot?: number;
  /** It tells the set when its job starts. */
  tellsBusy?: true;
}
export const SET_RUNNER_MEMO = 'ofSet';

/** Events of jobs whose labels this set covers; each may come late, twice and out of order. */
export const demandSignal = defineSignal<[{ events: JobEvent[] }]>('demand');
export const runnerOnlineSignal = defineSignal<[RunnerNews]>('runnerOnline');
/** Of an ephemeral runner whose memo asks for it: its job has started. */
export const runnerBusySignal = defineSignal<[RunnerNews]>('runnerBusy');
export const runnerEndedSignal = defineSignal<[RunnerEndedNews]>('runnerEnded');
export const setStatusQuery = defineQuery<RunnerSetStatus>('status');
/** What the set was last told to be, with every update since. */
export const setDeclarationQuery = defineQuery<RunnerSetInput>('declaration');
export const scaleUpdate = defineUpdate<RunnerSetStatus, [SetScale]>('scale');
/** Replaces the whole declaration; a template that differs starts a rollout. */
export const applyUpdate = defineUpdate<RunnerSetStatus, [RunnerSetInput]>('apply');
export const setTemplateUpdate = defineUpdate<RunnerSetStatus, [RunnerSetInput['template']]>('setTemplate');
export const pauseUpdate = defineUpdate<RunnerSetStatus, [{ reason?: string }?]>('pause');
export const resumeUpdate = defineUpdate<RunnerSetStatus, []>('resume');
/** Holds a runner, or with `release` lets it go. */
export const holdUpdate = defineUpdate<RunnerSetStatus, [{ runner: string; release?: boolean }]>('hold');
/** Drains every runner and ends the set: what `holdfast set delete` does. */
export const drainSetUpdate = defineUpdate<RunnerSetStatus, [{ reason?: string }?]>('drain');
