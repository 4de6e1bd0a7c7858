/**
 * Public names of the `job` workflow, which runs the steps of a job: its workflow type, query,
 * signals, status and result. Its signal `cancel` is that of a runner.
 */
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { CancelMode, RunnerCause, RunnerOutcome } from './runner.ts';

/** Workflow type of a job that consists of steps. */
export const JOB_WORKFLOW = 'job';

/** Stages of a job, in the order in which they run. */
export const JOB_STAGES = ['pre', 'test', 'post'] as const;
/** Stage that a step belongs to. */
export type JobStage = (typeof JOB_STAGES)[number];

/** Workflow id of a step. @param number - 1 for the first of its stage */
export const stepWorkflowId = (job: string, stage: JobStage, number: number): string =>
  `${job}-${stage}-${number}`;

/**
 * States of a step. `skipped`: `skipOnSuccess` applied. `not_run`: an earlier step failed, or the
 * job had no time left.
 */
export const STEP_STATES = ['waiting', 'running', 'ended', 'skipped', 'not_run'] as const;
/** State of a step. */
export type StepState = (typeof STEP_STATES)[number];

/** Status of one step. Times are in ISO 8601. */
export interface StepStatus {
  stage: JobStage;
  name: string;
  /** Id of the step's `runner` workflow, which has its log, pod and verdict. */
  workflowId: string;
  state: StepState;
  /** Name of the step's current or last pod. */
  pod?: string;
  /**
   * Folder of the step's last attempt in the worker's artifact store, with a trailing slash. Absent
   * if the worker has no store.
   */
  artifactPath?: string;
  startedAt?: string;
  endedAt?: string;
  outcome?: RunnerOutcome;
  cause?: RunnerCause;
  /** Exit code of the step's command, if it is known. */
  exitCode?: number;
  /** Reason for the outcome, or for not running the step. */
  message?: string;
  /** Whether the outcome of this step does not count for the job. */
  bestEffort?: true;
}

/** Line of the job's own log. */
export interface JobLogLine {
  /** Time of the entry (ISO 8601). */
  at: string;
  message: string;
}

/** Status of a job, as the query `status` returns it. */
export interface JobStatus {
  name: string;
  /** Stage of the running or next step. Absent once the job has ended. */
  stage?: JobStage;
  /** Steps of all stages, in the order in which they run. */
  steps: StepStatus[];
  /** Strongest request to end the job early, from a user or a deadline. */
  cancel?: { mode: CancelMode; reason: string };
  /** Condition that the job waits for, if any. */
  waitingFor?: string;
  /** Deadline of that wait (ISO 8601), if it has one. */
  waitingUntil?: string;
  /** Input that may not have the effect its author expects. Absent if there is none. */
  warnings?: string[];
  log: JobLogLine[];
}

/**
 * Result of the `job` workflow. `succeeded`: every step that counts succeeded. Otherwise the first
 * step that did not succeed decides the outcome. `failed`: the job's own fault. `errored`:
 * infrastructure; someone must act. `aborted`: the timeout of a step, or an interrupted job.
 */
export interface JobResult {
  outcome: RunnerOutcome;
  /** Cause of the outcome; see {@link RunnerCause}. */
  cause?: RunnerCause;
  /** Result in one sentence. */
  message: string;
  name: string;
  steps: StepStatus[];
  log: JobLogLine[];
}

/** Event that a step sends to its job for each pod that it creates. */
export interface StepPodCreatedEvent {
  /** Workflow id of the step. */
  workflowId: string;
  /** Name of the pod. */
  pod: string;
}

/**
 * Event that a step sends to its job once its command has ended and its files are stored. The next
 * step starts while the pod of this one is being deleted.
 */
export interface StepEndedEvent extends Pick<StepStatus, 'cause' | 'exitCode'> {
  /** Workflow id of the step. */
  workflowId: string;
  /**
   * First run id of the step's workflow. The job ignores an event with another one: users who may
   * only send signals do not know it.
   */
  firstRunId: string;
  outcome: RunnerOutcome;
  /** Reason for the outcome in one sentence. */
  message: string;
  /** Number of pods that the step has had. */
  attempt: number;
}

/** Returns the current status of a job. */
export const jobStatusQuery = defineQuery<JobStatus>('status');
/** Signal from a step to its job: the step has a new pod. */
export const stepPodCreatedSignal = defineSignal<[StepPodCreatedEvent]>('stepPodCreated');
/** Signal from a step to its job: the step has ended. */
export const stepEndedSignal = defineSignal<[StepEndedEvent]>('stepEnded');
