/**
 * Input of the `job` workflow. Each table of durations defines their names, defaults and meaning.
 */
import type { Durations } from '../domain/duration.ts';
import type { OnEviction, SignalTarget } from './runnerInput.ts';

/** Deadlines of a job, with their defaults. */
export const JOB_TIMEOUTS = {
  /**
   * Time limit from the creation of the first step's pod. Time in the queue does not count.
   * @default "4h"
   */
  timeout: '4h',
  /**
   * Time limit after an interruption, for the step being stopped and all of `post` together. A
   * quarter of it is kept for `post`.
   * @default "30m"
   */
  gracePeriod: '30m',
  /** Time limit from the job's start, including time in the queue and retries. @default "7d" */
  maxAge: '7d',
} as const;

/** Deadlines of one step, with their defaults. */
export const STEP_TIMEOUTS = {
  /** Time limit from the start of the command. @default "2h" */
  timeout: '2h',
  /**
   * Time from the stop signal to SIGKILL. The pod gets a quarter more, and at least 10 s more
   * (below 10 s: as much again, and at least 2 s). In a job with `post`, the pod of a step of `pre`
   * or `test` gets at most three quarters of the job's grace period.
   * @default "15s"
   */
  gracePeriod: '15s',
  /**
   * Time limit from the end of the command for storing its files (docs/jobs.md), if the worker has
   * a store. After a stop the pod's grace period applies to the upload, too.
   * @default "10m"
   */
  uploadTimeout: '10m',
} as const;

/**
 * Input of the `job` workflow: one JSON object. Durations are strings such as `30s`, `10m`,
 * `1h30m`.
 */
export interface JobInput extends Durations<typeof JOB_TIMEOUTS> {
  /** Name of the job. Steps get it as JOB_NAME. */
  name: string;
  /**
   * Repository of the job, `owner/repo`. The UI shows it, and the worker's timeouts depend on it.
   */
  repository?: string;
  /** Kubernetes namespace of the steps' pods. @default the worker's namespace */
  namespace?: string;
  /** Event in the repository that triggered the job, if any. Steps get it in variables. */
  source?: JobTrigger;
  /**
   * Steps to run before `test`. The first step that does not succeed ends the stage and prevents
   * `test`.
   */
  pre?: StepInput[];
  /** Steps that make up the job. The first step that does not succeed ends the stage. */
  test: StepInput[];
  /** Steps that always run, regardless of the outcome of earlier steps. */
  post?: PostStepInput[];
}

/** Event that triggered a run. */
export interface JobTrigger {
  /** Kind of event. Steps get it as JOB_EVENT. */
  event: 'push' | 'pull_request' | 'schedule';
  /** Commit to test. Steps get it as JOB_COMMIT. */
  commit?: string;
  /** Full Git ref, such as `refs/heads/main`. Steps get it as JOB_REF. */
  ref?: string;
  /** Base branch of a pull request. Steps get it as JOB_BASE. */
  base?: string;
  /** Number of the pull request. Steps get it as JOB_PULL_REQUEST. */
  pullRequest?: number;
  /**
   * Whether the change is from an outside contributor. Its pods get no Secret, no service account
   * token and no shared volume.
   * @default false
   */
  untrusted?: boolean;
}

/** Step of a job: a pod that runs one command. */
export interface StepInput extends Durations<typeof STEP_TIMEOUTS> {
  /** Name of the step, unique in the job. */
  name: string;
  /** Container image. @default the worker's image */
  image?: string;
  /** Script to run with `/bin/sh -e`. Exactly one of `commands` and `command` must be set. */
  commands?: string;
  /** Program to run and its arguments. */
  command?: string[];
  env?: Record<string, string>;
  /** Resource requests and limits, as in a Kubernetes container. */
  resources?: StepResources;
  volumes?: StepVolume[];
  /**
   * Security context of the step's container, as in Kubernetes, within the worker's pod policy.
   * @default no capabilities and no privilege escalation
   */
  securityContext?: StepSecurityContext;
  stop?: StepStop;
  /**
   * Reaction to the loss of the pod after the command has started. A pod that is lost earlier is
   * always replaced.
   * @default "fail"
   */
  onEviction?: Exclude<OnEviction, 'resume'>;
}

/** Fields of a Kubernetes container's security context that a step may set. */
export interface StepSecurityContext {
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  readOnlyRootFilesystem?: boolean;
  allowPrivilegeEscalation?: boolean;
  privileged?: boolean;
  /** Names without `CAP_`. By default all are dropped; `{drop: []}` keeps the runtime's defaults. */
  capabilities?: { add?: string[]; drop?: string[] };
  seccompProfile?: Record<string, string>;
  appArmorProfile?: Record<string, string>;
  seLinuxOptions?: Record<string, string>;
}

/** How a step is stopped. */
export interface StepStop {
  /**
   * Recipient of the stop signals. `process`: the command only, whose own trap may forward them.
   * `group`: its whole process group.
   * @default "process"
   */
  target?: SignalTarget;
}

/** Step of the stage `post`. */
export interface PostStepInput extends StepInput {
  /** Whether the outcome of this step does not count for the job. @default false */
  bestEffort?: boolean;
  /** Whether to skip this step if all earlier steps succeeded. @default false */
  skipOnSuccess?: boolean;
}

/** Resource quantities of a step's container, as in Kubernetes: `{cpu: 2, memory: "4Gi"}`. */
export interface StepResources {
  requests?: Record<string, string | number>;
  limits?: Record<string, string | number>;
}

/**
 * Kubernetes volume of the step's pod, with its mount path: `{name, mountPath, secret: {secretName:
 * …}}`.
 */
export interface StepVolume {
  name: string;
  /** Absolute path in the container. */
  mountPath: string;
  readOnly?: boolean;
  /**
   * Exactly one volume source, as in a Kubernetes pod: `secret`, `configMap`, `emptyDir`,
   * `persistentVolumeClaim`, …
   */
  [source: string]: unknown;
}
