/** Public names of jobs of several steps: the workflow type, its query, what its steps tell it, its status and result. Its signal `cancel` is the runner's. */
import { defineQuery, defineSignal } from '@temporalio/workflow';
import type { CancelMode, RunnerCause, RunnerOutcome } from './runner.ts';

export const JOB_WORKFLOW = 'job';

/** In their order. */
export const JOB_STAGES = ['pre', 'test', 'post'] as const;
export type JobStage = (typeof JOB_STAGES)[number];

/** Workflow id of a step. @param number - 1 for the first of its stage */
export const stepWorkflowId = (job: string, stage: JobStage, number: number): string =>
  `${job}-${stage}-${number}`;

/** `skipped`: `skipOnSuccess`. `not_run`: something before it has failed, or there was no time left. */
export const STEP_STATES = ['waiting', 'running', 'ended', 'skipped', 'not_run'] as const;
export type StepState = (typeof STEP_STATES)[number];

/** How one step is, or has become. Times in ISO 8601. */
export interface StepStatus {
  stage: JobStage;
  name: string;
  /** Of its `runner`, which has its log, its pod and its verdict. */
  workflowId: string;
  state: StepState;
  /** Its present pod, or its last. */
  pod?: string;
  /** Where what it left lies in the worker's store, if that has one: of its last attempt, with a slash at the end. */
  artifactPath?: string;
  startedAt?: string;
  endedAt?: string;
  outcome?: RunnerOutcome;
  cause?: RunnerCause;
  exitCode?: number;
  /** Why it ended so, was skipped or not run. */
  message?: string;
  bestEffort?: true;
}

/** A line of the job's own log. */
export interface JobLogLine {
  /** ISO 8601. */
  at: string;
  message: string;
}

export interface JobStatus {
  name: string;
  /** The stage of the step that runs, or is next; absent at the end. */
  stage?: JobStage;
  steps: StepStatus[];
  /** Why it is to end early, once somebody or a deadline has asked for that. */
  cancel?: { mode: CancelMode; reason: string };
  waitingFor?: string;
  /** ISO 8601. */
  waitingUntil?: string;
  log: JobLogLine[];
}

/**
 * `succeeded`: each step that counts did. Otherwise what the first has become that did not: `failed`: the job's own doing; `errored`:
 * infrastructure, somebody should look; `aborted`: a step's timeout, or the job was interrupted.
 */
export interface JobResult {
  outcome: RunnerOutcome;
  cause?: RunnerCause;
  /** One sentence for people. */
  message: string;
  name: string;
  steps: StepStatus[];
  log: JobLogLine[];
}

/** What a step tells its job each time it has a pod. */
export interface StepPodCreatedEvent {
  workflowId: string;
  pod: string;
}

/** What a step tells its job when its command is over and what it leaves is stored: the next begins while the pod of this one goes. */
export interface StepEndedEvent extends Pick<StepStatus, 'cause' | 'exitCode'> {
  workflowId: string;
  outcome: RunnerOutcome;
  message: string;
  /** How many pods it has had. */
  attempt: number;
}

export const jobStatusQuery = defineQuery<JobStatus>('status');
export const stepPodCreatedSignal = defineSignal<[StepPodCreatedEvent]>('stepPodCreated');
export const stepEndedSignal = defineSignal<[StepEndedEvent]>('stepEnded');
