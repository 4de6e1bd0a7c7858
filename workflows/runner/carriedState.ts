/**
 * State of the current runner of a workflow, and state that one run of the workflow carries over to
 * the next. Plain data.
 */
import type {
  RerunJob,
  RunnerCause,
  RunnerResult,
  RunnerStatus,
} from '../../core/contract/index.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { Location } from '../../core/domain/location.ts';
import type { PodSnapshot, RunnerIdentity } from '../../core/domain/pod.ts';
import type { RunnerJobs } from './jobEvents.ts';
import type { UnregistrationProgress } from './unregisterFacts.ts';

/** State of the current runner of a workflow. */
export interface CurrentRunner {
  readonly identity: RunnerIdentity;
  /** ID of the registration at the CI server. */
  id?: string;
  /** Last observed state of the pod. */
  pod?: PodSnapshot;
  /** Time at which the workflow first saw that the container had started (ms since the epoch). */
  startSeenMs?: number;
  /**
   * Whether an interrupted provisioning may have created a pod that registered, and that no longer
   * existed when the workflow looked for it.
   */
  podInDoubt?: true;
  /** State of the pod once it has ended. All other waits end with it. */
  ended?: PodSnapshot;
  online: boolean;
  /**
   * Whether a job ran, according to a source that is final: the CI server or the runner's own
   * record.
   */
  hadJob: boolean;
  /**
   * Whether the pod's own probes report a job, since it is online. `undefined` if the pod does not
   * report its state, or has not done so yet.
   */
  podBusy?: boolean;
  /** Jobs according to job events. */
  jobs: RunnerJobs;
  /**
   * Time until which a static runner's pod may not know yet of a job that an event reported (ms
   * since the epoch).
   */
  idleInDoubtUntilMs?: number;
  /** Job, for display. */
  job?: string;
  /**
   * Time at which an event reported the end of an ephemeral runner's job (ms since the epoch). Its
   * deadline then limits the time until the runner exits.
   */
  jobEndedAt?: number;
  /** Conclusion of an ephemeral runner's job, once an event has reported it. */
  jobConclusion?: string;
  /** Time at which the last job was reported to have ended without success (ms since the epoch). */
  jobFailedAt?: number;
  /** That job, if its event names the repository. */
  failedJob?: RerunJob;
  /** Start of the current busy period (ms since the epoch). */
  busySince?: number;
  /** Key of the job of the current busy period, once an event has reported it. */
  busyJobKey?: string;
  /** Deadline of the job (ms since the epoch). Changed by `extendDeadline`. */
  jobDeadline?: number;
  /**
   * Time that the runner was busy according to its pod alone, since an event last reported a job of
   * this runner (ms).
   */
  unconfirmedBusyMs?: number;
  /** Suspicion against an idle runner that is of no use. The runner is replaced. */
  suspected?: Suspicion;
}

/** Reason why the workflow itself, and no one else, replaces an idle runner. */
export interface Suspicion {
  readonly cause: RunnerCause;
  /** Description of the problem, as the beginning of a sentence. */
  readonly why: string;
}

/**
 * State that continue-as-new carries over: counters and received events.
 *
 * It is the second argument of the workflow, which anyone who may start a workflow can write as
 * well, so it grants nothing. The identity, permissions and limits of the runner come from the
 * admission of this run.
 */
export interface CarriedRunnerState {
  /** Name of the runner at the CI server, for the status until this run is admitted. */
  readonly runnerName: string;
  /** Location of the pods. A worker of another location must not admit the run. */
  readonly location: Location;
  /** Start of the workflow's first run (ms since the epoch). */
  readonly createdAtMs: number;
  readonly attempt: number;
  readonly runner: Omit<CurrentRunner, 'identity'>;
  readonly phases: RunnerStatus['phases'];
  readonly replacements: RunnerResult['replacements'];
  readonly unregisterAttempts: number;
  readonly usedJobMs: number;
  readonly neverStartedInARow: number;
  readonly shortLivedInARow: number;
  readonly cancel?: Cancellation;
  readonly notifiedOnline: boolean;
  readonly notifiedBusy?: true;
  readonly failure?: AttemptFailure;
  readonly heard?: UnregistrationProgress;
}

/** Deadline or failed step that ended an attempt before its runner ended. */
export interface AttemptFailure {
  readonly cause?: RunnerCause;
  readonly message: string;
}
