/** Public names of runner sets: the workflow type, its signals, queries and status. What a set can be told: setCommand.ts. */
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { CiJob } from '../domain/ciServer.ts';
import type { CiServerKind } from '../domain/ciServerKind.ts';
import type { RunnerCause, RunnerOutcome } from './runner.ts';
import type { RunnerSetInput } from './runnerSetInput.ts';

export const RUNNER_SET_WORKFLOW = 'runnerSet';

/** Workflow id of a set: one per name. */
export const setWorkflowId = (name: string): string => `set-${name}`;

/** The name of a set, from its workflow id. */
export const parseSetWorkflowId = (workflowId: string): string =>
  workflowId.slice(setWorkflowId('').length);

/** One event of one job, as a set hears of it. Times are the CI server's own, ms since the epoch. */
export interface JobEvent {
  action: 'queued' | 'in_progress' | 'completed';
  /** ID of the job at the CI server. */
  jobId: string;
  /** Of the workflow run: a re-run is another job. */
  runAttempt: number;
  /** `owner/repo`. */
  repository: string;
  /** As the CI server compares them; its adapter normalizes them. */
  labels: string[];
  /** When the CI server says that it happened (ms since the epoch). */
  at: number;
  runnerName?: string;
  conclusion?: string;
  /** Workflow id of the set that passes the job on, because it cannot serve it now. Absent: the webhook tells. */
  reroutedBy?: string;
  /** `traceparent` of the span in which it was told: a runner that is started for it is in the same trace. Absent: nothing is traced. */
  traceparent?: string;
}

/** What a runner tells the set it belongs to. */
export interface RunnerRef {
  workflowId: string;
  runnerName: string;
}
export interface RunnerEndedEvent extends RunnerRef {
  outcome: RunnerOutcome;
  cause?: RunnerCause;
  /** It was online at some time. */
  wasOnline: boolean;
  /** It ran a job. */
  ranJob: boolean;
}
export type RunnerEvent =
  ({ kind: 'online' | 'busy' } & RunnerRef) | ({ kind: 'ended' } & RunnerEndedEvent);
/** With the time at which it was told, by the worker's clock (ms since the epoch). */
export type TimedRunnerEvent = RunnerEvent & { at: number };

export interface SetRunnerStatus {
  workflowId: string;
  runnerName?: string;
  /** Hash of the template it was started with. */
  templateHash: string;
  state: 'starting' | 'idle' | 'busy' | 'draining';
  onHold: boolean;
  /** ISO 8601. */
  startedAt: string;
  slot?: number;
  /** The set has asked it to drain, and it does not say that it does: when last (ISO 8601), and how often. */
  drainRequested?: { at: string; times: number };
}

export interface RunnerSetStatus {
  name: string;
  /** Hash of the template of now. */
  templateHash: string;
  desired: number;
  /** Idle runners kept ready, or the fixed number. */
  min: number;
  /** Runners at the most; of a fixed number with those that are started ahead. */
  max: number;
  /** The fixed number; absent: the set follows demand. */
  replicas?: number;
  /** Successors that are started ahead, at the most. Absent: none. */
  replaceAhead?: number;
  runners: SetRunnerStatus[];
  jobs: { queued: number; running: number; startedTotal: number; completedTotal: number };
  /** Why no runner is started now, if so: `paused`, `never_registered ×2`, `runner_deprecated`, a failed create, … */
  blockedReason?: string;
  /** Until when, or for what, fewer runners are kept or started than wanted (scale-down delay, recreation guard, schedule). */
  waitingFor?: string;
  /** Jobs that wait in other sets, because this one could not serve them. Absent: none. */
  rerouted?: number;
  /** What limits hold back: queued jobs that have no runner started for them, and runners for which the day has no time left. Absent: nothing. */
  limited?: { jobs: number; runners: number };
  /** With `limits.maxRunnerHours`: what is used up of the day's. */
  runnerHours?: number;
  /** The set was told to end, and ends when its runners have left; why, or `''`. */
  deleting?: string;
  /** Absent: its runners are plain commands. */
  ciServer?: CiServerKind;
  labels: string[];
  scope: string;
  /** An organization and an enterprise may have the same name. Absent: an organization, or with a `/` in `scope` a repository. */
  scopeKind?: ScopeKind;
  /** Jobs without labels are for it, too. Absent: they are not. */
  groupJobs?: true;
  holds: string[];
}

export type ScopeKind = 'organization' | 'repository' | 'enterprise';

/**
 * Which jobs a set is for, as a memo of its workflow under {@link SET_ROUTING_MEMO}: so the webhook finds it in the one list of all sets,
 * also while no worker can answer a query. Without the memo the `status` query is asked.
 */
export interface SetRoutingInfo {
  /** Absent: the set is for plain commands, and no job is for it. */
  ciServer?: CiServerKind;
  labels: string[];
  scope: string;
  scopeKind: ScopeKind;
  /** Runner group, as the template has it. Absent: the default one, or none. */
  group?: { id: string } | { name: string };
  /** Jobs without labels are for it, too. Absent: they are not. */
  groupJobs?: true;
  /** It has as many jobs as it can serve, is paused, or ends: others of its kind pass it no job. */
  atCapacity?: true;
  /** It ends: others of its kind pass it no job, not even when they end, too. */
  draining?: true;
}
export const SET_ROUTING_MEMO = 'routing';

/** The RunnerSet resource that a set was started for, as a memo of its workflow under {@link SET_RESOURCE_MEMO}. */
export interface RunnerSetRef {
  namespace: string;
  name: string;
  uid: string;
}
export const SET_RESOURCE_MEMO = 'resource';

/** What a set notes at each runner that it starts, as a memo of the runner's workflow under {@link SET_RUNNER_MEMO}. */
export interface SetRunnerMemo {
  /** Hash of its template. */
  templateHash: string;
  ephemeral: boolean;
  slot?: number;
  /** It tells the set when its job starts. */
  notifyBusy?: true;
  /** Its successor may be there before its pod is gone: it tells of its end as soon as its container has ended. */
  notifyEndEarly?: true;
}
export const SET_RUNNER_MEMO = 'runnerSet';

/** Events of jobs whose labels this set covers; each may come late, twice and out of order. `at`: when they are sent, by the sender's clock (ms since the epoch). */
export const jobEventsSignal = defineSignal<[{ events: JobEvent[]; at?: number }]>('jobEvents');
/** What a look at the CI server's own list of jobs has found: told so, because the run that asked may have continued as new meanwhile. */
export interface QueueCheckResult {
  /** When the look began, by the set's clock (ms since the epoch). */
  checkedAt: number;
  /** Those of the jobs that this set has to serve, and those that its runners run. */
  jobs: CiJob[];
  /** Nothing was left out: a job of the set that is neither among them nor in `listed` neither waits nor runs. */
  complete: boolean;
  /** Keys of the jobs that signals before this one told of the same look. Absent: there were none. */
  listed?: string[];
  /** Keys of jobs of the set that were asked for by themselves, and neither wait nor run. */
  absent: string[];
  /** Of the sets that jobs were passed on to, those that have ended. */
  endedSets: string[];
}
export const queueCheckedSignal = defineSignal<[QueueCheckResult]>('queueChecked');
/** News of this set's runners, gathered by the workers; each may come late and twice. `busy`: only of an ephemeral runner whose memo asks for it. */
export const runnerEventsSignal = defineSignal<[{ events: TimedRunnerEvent[] }]>('runnerEvents');
export const setStatusQuery = defineQuery<RunnerSetStatus>('status');
/** What the set was last told to be, with every command since. */
export const setDeclarationQuery = defineQuery<RunnerSetInput>('declaration');
