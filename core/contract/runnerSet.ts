/**
 * Public names of the `runnerSet` workflow: its workflow type, signals, queries and status. The
 * commands to a set are in setCommand.ts.
 */
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { CiJob } from '../domain/ciServer.ts';
import type { CiServerKind } from '../domain/ciServerKind.ts';
import type { RunnerCause, RunnerOutcome } from './runner.ts';
import type { RunnerSetInput } from './runnerSetInput.ts';
import type { SetJobsRequest, SetJobStatus, WaitReason } from './why.ts';

/** Workflow type of a runner set. */
export const RUNNER_SET_WORKFLOW = 'runnerSet';

/** Workflow id of a set: one per name. */
export const setWorkflowId = (name: string): string => `set-${name}`;

/** Returns the name of a set from its workflow id. */
export const parseSetWorkflowId = (workflowId: string): string =>
  workflowId.slice(setWorkflowId('').length);

/** Job event as a set receives it. Times are the CI server's own, in ms since the epoch. */
export interface JobEvent {
  action: 'queued' | 'in_progress' | 'completed';
  /** ID of the job at the CI server. */
  jobId: string;
  /** Attempt of the workflow run at the CI server. A re-run is a different job. */
  runAttempt: number;
  /** ID of the workflow run at the CI server. Absent if the event does not name it. */
  runId?: string;
  /** `owner/repo`. */
  repository: string;
  /**
   * Labels of the job, normalized by the CI server's adapter so that equal labels are equal
   * strings.
   */
  labels: string[];
  /** Time of the event according to the CI server (ms since the epoch). */
  at: number;
  /** Runner that the job is assigned to, by its name at the CI server. */
  runnerName?: string;
  /** Conclusion of a completed job as the CI server states it. */
  conclusion?: string;
  /**
   * Workflow id of the set that rerouted the job because it cannot serve it now. Absent if the
   * event comes from the webhook.
   */
  reroutedBy?: string;
  /**
   * `traceparent` of the span that sent the event. A runner that is started for the job joins its
   * trace. Absent without tracing.
   */
  traceparent?: string;
}

/** Runner of a set, as its events to the set identify it. */
export interface RunnerRef {
  workflowId: string;
  /** Name of the runner at the CI server. */
  runnerName: string;
}
/** Event that a runner sends to its set when it has ended. */
export interface RunnerEndedEvent extends RunnerRef {
  outcome: RunnerOutcome;
  cause?: RunnerCause;
  /** Whether the runner was ever online. */
  wasOnline: boolean;
  /** Whether the runner ran a job. */
  ranJob: boolean;
  /**
   * Result in one sentence, at most 500 characters. Only of a runner that failed or errored.
   */
  message?: string;
}
/** Event that a runner sends to its set. */
export type RunnerEvent =
  ({ kind: 'online' | 'busy' } & RunnerRef) | ({ kind: 'ended' } & RunnerEndedEvent);
/** Runner event with the time at which it was sent, by the worker's clock (ms since the epoch). */
export type TimedRunnerEvent = RunnerEvent & { at: number };

/** Status of one runner of a set. */
export interface SetRunnerStatus {
  workflowId: string;
  /** Name of the runner at the CI server. Absent until the set knows it. */
  runnerName?: string;
  /** Hash of the template that the runner was started with. */
  templateHash: string;
  state: 'starting' | 'idle' | 'busy' | 'draining';
  /** Whether the runner is exempt from scale-downs and rollouts. */
  onHold: boolean;
  /** ISO 8601. */
  startedAt: string;
  /** Number of the runner's volume slot, from 0. Absent if the set has no volume slots. */
  slot?: number;
  /**
   * Drain requests that the runner has not confirmed yet: the time of the last one (ISO 8601) and
   * their number.
   */
  drainRequested?: { at: string; times: number };
}

/** Runners that an answer to the query `status` contains. */
export interface SetStatusRequest {
  /** Only runners whose `workflowId` sorts after this one. @default all */
  after?: string;
  /** Maximum number of runners, at most 2,000. `0`: only the counts. @default 2000 */
  max?: number;
}

/**
 * Answer to the query `status` of a set whose declaration no worker has admitted yet in the current
 * run.
 */
export interface SetAwaitingAdmission {
  name: string;
  /** Reason why the set waits, in one sentence. */
  awaitingAdmission: string;
}

/** Status of a set, as the query `status` returns it. */
export interface RunnerSetStatus {
  name: string;
  /** Hash of the current template. */
  templateHash: string;
  /** Number of runners that the set wants now. */
  desired: number;
  /** Idle runners kept ready, or the fixed number of runners. */
  min: number;
  /** Maximum number of runners. For a set of fixed size it includes the runners started ahead. */
  max: number;
  /** Fixed number of runners. Absent if the set follows demand. */
  replicas?: number;
  /** Maximum number of successors started ahead. Absent: none. */
  replaceAhead?: number;
  /** Number of runners by state. */
  runnerCounts: Record<SetRunnerStatus['state'], number>;
  /**
   * The first 2,000 runners in the order of `workflowId`, or those that {@link SetStatusRequest}
   * selects.
   */
  runners: SetRunnerStatus[];
  /** `after` of a request for the runners after these. Absent: there are no more. */
  moreAfter?: string;
  /** Jobs queued and running now, and totals since the set was created. */
  jobs: { queued: number; running: number; startedTotal: number; completedTotal: number };
  /**
   * Reason why no runner is started now, such as `paused`, `never_registered ×2` or
   * `runner_deprecated`. Absent if runners can be started.
   */
  blockedReason?: string;
  /**
   * Reason why fewer runners are kept or started than wanted, with the deadline (scale-down delay,
   * recreation guard, schedule).
   */
  waitingFor?: string;
  /** Everything that the set waits for, by cause. Absent: nothing. */
  waits?: WaitReason[];
  /**
   * Last runner of the current template that failed: it did not come online, or ended soon after.
   * Absent once a runner of the template is ready.
   */
  lastFailure?: SetFailure;
  /**
   * Time since which a list of its runners from Temporal's visibility has been awaited (ISO 8601).
   * For more than some seconds only while visibility is unavailable. Until then no runner is
   * drained by a scale-down or rollout. Absent: none is awaited.
   */
  listPendingSince?: string;
  /**
   * Version of the runner in the template's image, and until when the CI server accepts it. Absent:
   * it was not checked yet, or the tag of the image contains no version.
   */
  runnerVersion?: RunnerVersionStatus;
  /** Scale set that the set takes its demand from. Absent: job events report the demand. */
  scaleSet?: ScaleSetStatus;
  /** Limit of the cluster. Absent: the cluster does not limit the set, or it is not observed. */
  clusterLimit?: ClusterLimitStatus;
  /** State of the checks for queued jobs. Absent: the last one was complete, or there was none. */
  queueCheck?: QueueCheckStatus;
  /** Number of jobs that wait in other sets because this one could not serve them. Absent: none. */
  rerouted?: number;
  /**
   * Demand that limits hold back: queued jobs without a runner, and runners that exceed the day's
   * runner hours. Absent: none.
   */
  limited?: { jobs: number; runners: number };
  /** Runner hours used today (UTC). Only with `limits.maxRunnerHours`. */
  runnerHours?: number;
  /**
   * Reason for the deletion of the set, possibly `''`. Present once the set is being deleted; it
   * ends when its runners have ended.
   */
  deleting?: string;
  /** Kind of CI server. Absent if the runners are plain commands. */
  ciServer?: CiServerKind;
  /** Labels of the set's runners. */
  labels: string[];
  /** Name of the organization, repository (`owner/repo`) or enterprise; `''` for plain commands. */
  scope: string;
  /**
   * Kind of the scope; an organization and an enterprise may have the same name. If absent, it is a
   * repository if `scope` contains a `/`, and otherwise an organization.
   */
  scopeKind?: ScopeKind;
  /** Whether the set also serves jobs without labels. Absent: it does not. */
  groupJobs?: true;
  /** Names or workflow ids of the runners that are exempt from scale-downs and rollouts. */
  holds: string[];
}

/** Limit that the cluster imposes on a set with `capacity: observed`. */
export interface ClusterLimitStatus {
  /** Number of runners for which the cluster has room. */
  limit: number;
  /** Number of further runners that now try whether there is more room. 0 between two attempts. */
  probing: number;
  /** Reason, such as `pods unschedulable (Insufficient cpu)` or `quota ci used up (pods)`. */
  reason: string;
  /** Time since which the cluster has limited the set (ISO 8601). */
  since: string;
}

/** Scale set of a set, as the set knows it. */
export interface ScaleSetStatus {
  /** Name of the scale set at the CI server. */
  name: string;
  /** Number of jobs that the set can run at a time, which the CI server does not exceed. */
  capacity: number;
  /** Jobs assigned to the scale set, waiting or running. */
  assigned: number;
  /** Time of the numbers (ISO 8601). Absent: there were none yet. */
  at?: string;
  /** Reason why the scale set cannot be read now. Absent: it can be read. */
  problem?: string;
  /** Time since which it cannot be read (ISO 8601). */
  problemSince?: string;
}

/** Version of a runner program, and until when the CI server accepts it. */
export interface RunnerVersionStatus {
  /** Such as `2.338.0`. */
  version: string;
  /** Time until which runners of the version get jobs (ISO 8601). Absent: no end is known. */
  jobsUntil?: string;
  /** Time until which runners of the version can register (ISO 8601). Absent: no end is known. */
  registrationUntil?: string;
}

/** Failure of a set's runner to become ready. */
export interface SetFailure {
  /** Workflow id of the runner. */
  runner: string;
  /** Reason in one sentence, such as the API server's response to the pod. */
  message: string;
  /** Cause of the runner's outcome, if it has one. */
  cause?: RunnerCause;
  /** Time at which the set was notified (ISO 8601). */
  at: string;
}

/** Reason why a set's checks of the CI server's job list may miss jobs. */
export interface QueueCheckStatus {
  /**
   * `budget`: the request budget for checks is spent. `failed`: the last check failed. `partial`:
   * not all jobs of the scope can be listed. `unsupported`: the CI server has no list for the scope,
   * as GitHub for an enterprise.
   */
  reason: 'budget' | 'failed' | 'partial' | 'unsupported';
  /** Time since which no check was complete (ISO 8601). */
  incompleteSince: string;
  /** Time at which the request budget is renewed (ISO 8601). Only with `budget`. */
  budgetUntil?: string;
  /** Failure of the last check. Only with `failed`. */
  message?: string;
}

/** Kind of scope that runners are registered in. */
export type ScopeKind = 'organization' | 'repository' | 'enterprise';

/**
 * Jobs that a set serves, as a memo of its workflow under {@link SET_ROUTING_MEMO}. The webhook
 * reads it from the list of all sets, so it works while no worker can answer a query. For a set
 * without the memo it queries `status`.
 */
export interface SetRoutingInfo {
  /** Kind of CI server. Absent if the set runs plain commands and serves no jobs. */
  ciServer?: CiServerKind;
  labels: string[];
  /** Name of the organization, repository (`owner/repo`) or enterprise. */
  scope: string;
  scopeKind: ScopeKind;
  /** Runner group from the template. Absent: the default group, or none. */
  group?: { id: string } | { name: string };
  /** Whether the set also serves jobs without labels. Absent: it does not. */
  groupJobs?: true;
  /**
   * Whether the set has as many jobs as it can serve, is paused or is being deleted. Other sets do
   * not reroute jobs to it.
   */
  atCapacity?: true;
  /**
   * Whether the set is being deleted. Other sets never reroute jobs to it, even if they are being
   * deleted themselves.
   */
  draining?: true;
}
/** Memo key of {@link SetRoutingInfo}. */
export const SET_ROUTING_MEMO = 'routing';

/**
 * RunnerSet resource that a set was started for, as a memo of its workflow under {@link
 * SET_RESOURCE_MEMO}.
 */
export interface RunnerSetRef {
  namespace: string;
  name: string;
  uid: string;
  /** UID of the namespace kube-system of its cluster. Absent: unknown. */
  cluster?: string;
}
/** Memo key of {@link RunnerSetRef}. */
export const SET_RESOURCE_MEMO = 'resource';

/**
 * Reason for which a set ends, as a memo of its workflow under {@link SET_DELETION_MEMO}. Present
 * from the moment at which the set was deleted (command `drain`) or its workflow cancelled. A set
 * that is terminated without it did not end on purpose.
 */
export interface SetDeletion {
  reason: string;
}
/** Memo key of {@link SetDeletion}. */
export const SET_DELETION_MEMO = 'deletion';

/**
 * Facts that a set records with each runner that it starts, as a memo of the runner's workflow
 * under {@link SET_RUNNER_MEMO}.
 */
export interface SetRunnerMemo {
  /** Hash of the template that the runner was started with. */
  templateHash: string;
  ephemeral: boolean;
  /** Number of the runner's volume slot, from 0. Absent if the set has no volume slots. */
  slot?: number;
  /** Whether the runner notifies the set when its job starts. */
  notifyBusy?: true;
  /**
   * Whether the runner notifies the set as soon as its container has ended, because its successor
   * may start before its pod is deleted.
   */
  notifyEndEarly?: true;
  /**
   * Whether the end may reach the set a moment later, together with other events: no job waited for
   * a runner to leave when this one was started.
   */
  endMayWait?: true;
}
/** Memo key of {@link SetRunnerMemo}. */
export const SET_RUNNER_MEMO = 'runnerSet';

/**
 * Signal with events of jobs whose labels this set covers. Events may arrive late, twice and out of
 * order. `at`: time of sending, by the sender's clock (ms since the epoch).
 */
export const jobEventsSignal = defineSignal<[{ events: JobEvent[]; at?: number }]>('jobEvents');
/**
 * Result of a check of the CI server's job list. It arrives as a signal, because the run that
 * requested the check may have continued as new since.
 */
export interface QueueCheckResult {
  /** Start of the check, by the set's clock (ms since the epoch). */
  checkedAt: number;
  /** Jobs that this set must serve, and jobs that its runners run. */
  jobs: CiJob[];
  /**
   * Whether the check covered all jobs. If so, a job of the set that is in neither `jobs` nor
   * `listed` is neither queued nor running.
   */
  complete: boolean;
  /** Whether more signals about the same check follow. Absent: this is the last one. */
  continues?: true;
  /**
   * Time at which the request budget for checks is renewed, by the worker's clock (ms since the
   * epoch). Absent: the budget did not limit the check.
   */
  budgetUntil?: number;
  /** Whether the CI server has no job list for this scope. Absent: it has one. */
  unsupported?: true;
  /** Keys of the jobs in earlier signals about the same check. Absent: none. */
  listed?: string[];
  /** Keys of jobs of the set that were checked individually and are neither queued nor running. */
  absent: string[];
  /** Sets that jobs were rerouted to and that have ended since. */
  endedSets: string[];
}
/** Signal with the result of a check of the CI server's job list. */
export const queueCheckedSignal = defineSignal<[QueueCheckResult]>('queueChecked');
/**
 * Signal with events of this set's runners, batched by the workers. Each may arrive late and twice.
 * `busy` comes only from an ephemeral runner whose memo requests it.
 */
export const runnerEventsSignal = defineSignal<[{ events: TimedRunnerEvent[] }]>('runnerEvents');
/**
 * Signal with the version of the set's runners and its deadlines, from the daily check of a worker.
 * `at`: time of the check (ms since the epoch).
 */
export const runnerVersionSignal =
  defineSignal<[RunnerVersionStatus & { at: number }]>('runnerVersion');
/** Returns the current status of a set. */
export const setStatusQuery = defineQuery<
  RunnerSetStatus | SetAwaitingAdmission,
  [request?: SetStatusRequest]
>('status');
/**
 * Returns the jobs that a set knows and the request selects, at most 100. A set whose jobs GitHub
 * assigns to a scale set knows only their number, and returns none.
 */
export const setJobsQuery = defineQuery<SetJobStatus[], [request: SetJobsRequest]>('jobs');
/** Returns the last declaration of a set, with all later commands applied. */
export const setDeclarationQuery = defineQuery<RunnerSetInput>('declaration');
