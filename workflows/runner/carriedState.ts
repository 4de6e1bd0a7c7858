/** What a life knows of its present runner, and what it carries from one run of its workflow to the next. Plain data. */
import type { RunnerCause, RunnerResult, RunnerStatus } from '../../core/contract/index.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { Location } from '../../core/domain/location.ts';
import type { PodSnapshot, RunnerIdentity } from '../../core/domain/pod.ts';
import type { RunnerJobs } from './jobEvents.ts';
import type { UnregistrationProgress } from './unregisterFacts.ts';

/** What is known of the present runner of a life. */
export interface CurrentRunner {
  readonly identity: RunnerIdentity;
  /** ID of the registration at the CI server. */
  id?: string;
  /** The pod as last seen. */
  pod?: PodSnapshot;
  /** An interrupted provisioning may have made a pod that was gone before it was looked for, and that had registered. */
  podInDoubt?: true;
  /** The pod once it has ended: what everything else waits for. */
  ended?: PodSnapshot;
  online: boolean;
  /** A job ran, by a word that nothing takes back: the CI server's, or the runner's own record. */
  hadJob: boolean;
  /** By the pod's own probes, since it is online; `undefined` when it does not tell, or has not told yet. */
  podBusy?: boolean;
  /** By job events. */
  jobs: RunnerJobs;
  /** Until when a static runner's pod may not know yet of the job that an event told of (ms since the epoch). */
  idleInDoubtUntilMs?: number;
  /** For people. */
  job?: string;
  /** When its last job was said to have ended otherwise than in success (ms since the epoch). */
  jobFailedAt?: number;
  /** ms since the epoch. */
  busySince?: number;
  /** Key of the job that it has been busy with since then, once an event told. */
  busyJobKey?: string;
  /** ms since the epoch; moved by `extendDeadline`. */
  jobDeadline?: number;
  /** How long it was busy by its pod's word alone, since an event last told of a job of its own (ms). */
  unconfirmedBusyMs?: number;
  /** Idle, and of no use: another takes its place. */
  suspected?: Suspicion;
}

/** Why nobody else but its own life wants an idle runner gone. */
export interface Suspicion {
  readonly cause: RunnerCause;
  /** What is wrong with it, as the beginning of a sentence. */
  readonly why: string;
}

/**
 * What continue-as-new carries over: what was counted and heard. It is the second argument of the workflow, which whoever may start one can
 * write as well, so nothing of it allows anything: what the runner may be, its identity and its limits are those of this run's own admission.
 */
export interface CarriedRunnerState {
  /** Name of the runner at the CI server, for the status until this run is admitted. */
  readonly runnerName: string;
  /** Where the pods were: a worker of another place must not admit the run. */
  readonly location: Location;
  /** When the life's first run began (ms since the epoch). */
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

/** A deadline or a failed step that ended an attempt before its runner did. */
export interface AttemptFailure {
  readonly cause?: RunnerCause;
  readonly message: string;
}
