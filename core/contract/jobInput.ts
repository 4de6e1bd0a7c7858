/** Input of the `job` workflow. The tables of durations are where each is written: its name, its default and what it means. */
import type { Durations } from '../domain/duration.ts';
import type { OnEviction, SignalTarget } from './runnerInput.ts';

/** Deadlines of a job, with their defaults. */
export const JOB_TIMEOUTS = {
  /** From when its first step's pod is made, not while it is queued. @default "4h" */
  timeout: '4h',
  /** After an interruption: for the step that is stopped and all of `post` together. @default "30m" */
  gracePeriod: '30m',
  /** From the job's start, queueing and retries included. @default "7d" */
  maxAge: '7d',
} as const;

/** Deadlines of one step, with their defaults. */
export const STEP_TIMEOUTS = {
  /** From its command's start. @default "2h" */
  timeout: '2h',
  /** From a stop's signal to SIGKILL. The pod has a quarter more, and at least 2 s more. @default "15s" */
  gracePeriod: '15s',
  /** From its end: for storing what it left (docs/jobs.md), with a worker that has a store. After a stop it has the pod's grace, as the step itself. @default "10m" */
  uploadTimeout: '10m',
} as const;

/** Input of the `job` workflow: one JSON object. Durations are strings such as `30s`, `10m`, `1h30m`. */
export interface JobInput extends Durations<typeof JOB_TIMEOUTS> {
  /** Steps find it as JOB_NAME. */
  name: string;
  /** For which it runs, `owner/repo`: shown, and what the worker's timeouts go by. */
  repository?: string;
  /** Kubernetes namespace of the steps' pods. Default: the worker's. */
  namespace?: string;
  /** What has started it, if something of the repository's has: steps find it in variables. */
  source?: JobTrigger;
  /** Before `test`; the first that does not succeed ends this stage, and there is no `test`. */
  pre?: StepInput[];
  /** The first that does not succeed ends this stage. */
  test: StepInput[];
  /** Always run, each of them, whatever became of those before. */
  post?: PostStepInput[];
}

/** What a run is for. */
export interface JobTrigger {
  /** Steps find it as JOB_EVENT. */
  event: 'push' | 'pull_request' | 'schedule';
  /** Steps find it as JOB_COMMIT. */
  commit?: string;
  /** In full, such as `refs/heads/main`; steps find it as JOB_REF. */
  ref?: string;
  /** The branch that a pull request is to be merged into; steps find it as JOB_BASE. */
  base?: string;
  /** Its number; steps find it as JOB_PULL_REQUEST. */
  pullRequest?: number;
  /** An outsider's: it gets no Secret, no token of a service account, and no volume that others use. @default false */
  untrusted?: boolean;
}

/** One step: a pod that runs one command. */
export interface StepInput extends Durations<typeof STEP_TIMEOUTS> {
  /** Unique in the job. */
  name: string;
  /** Default: the worker's. */
  image?: string;
  /** A script, run with `/bin/sh -e`. Exactly one of `commands` and `command`. */
  commands?: string;
  /** The program to run and its arguments. */
  command?: string[];
  env?: Record<string, string>;
  /** As of a Kubernetes container. */
  resources?: StepResources;
  volumes?: StepVolume[];
  stop?: StepStop;
  /** When its pod is lost after its command has started. Before that another pod takes its place. @default "fail" */
  onEviction?: Exclude<OnEviction, 'resume'>;
}

export interface StepStop {
  /** Who gets a stop's signals: the command alone, whose own trap may pass them on, or its whole process group. @default "process" */
  target?: SignalTarget;
}

export interface PostStepInput extends StepInput {
  /** What becomes of it does not change the job's outcome. @default false */
  bestEffort?: boolean;
  /** Skipped when all before it succeeded. @default false */
  skipOnSuccess?: boolean;
}

export interface StepResources {
  requests?: Record<string, string | number>;
  limits?: Record<string, string | number>;
}

/** A Kubernetes volume of the step's pod, and where it is mounted: `{name, mountPath, secret: {secretName: …}}`. */
export interface StepVolume {
  name: string;
  /** Absolute path in the container. */
  mountPath: string;
  readOnly?: boolean;
  /** One volume source, as of a Kubernetes pod: `secret`, `configMap`, `emptyDir`, `persistentVolumeClaim`, … */
  [source: string]: unknown;
}
