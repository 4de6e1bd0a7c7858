/** Facts from which an explanation follows. `holdfast why` reads them; nothing here decides. */
import type { CiServerKind } from '../domain/ciServerKind.ts';
import type { RoutableSet } from '../domain/jobRouting.ts';
import type { PodSnapshot } from '../domain/pod.ts';
import type {
  RunnerResult,
  RunnerSetRef,
  RunnerSetStatus,
  RunnerStatus,
  ServingSet,
  SetJobStatus,
} from '../contract/index.ts';

/** Pending activity of a workflow. */
export interface PendingFact {
  readonly type: string;
  /** Whether it waits for a worker, or for its next attempt. */
  readonly scheduled: boolean;
  readonly attempt: number;
  readonly taskQueue?: string;
  /** Type of the last failure; see FAILURE_TYPES. Absent: none, or a timeout. */
  readonly failureType?: string;
  readonly lastFailure?: string;
  /** Time of the next attempt (ISO 8601). */
  readonly nextRetryAt?: string;
}

/** Facts of any workflow. */
export interface WorkflowFacts {
  /** Workflow id. */
  readonly id: string;
  /** Its page in Temporal's UI. */
  readonly url?: string;
  /** Pause in Temporal: since when (ISO 8601), and in words. */
  readonly paused?: { readonly since?: string; readonly text: string };
  /** Task queues that it waits on and no worker polls. */
  readonly unpolled: readonly { readonly taskQueue: string; readonly fix: string }[];
  readonly pending: readonly PendingFact[];
}

/** Verdict of a runner, or its replacement. */
export interface RunnerEndFacts extends Partial<Omit<RunnerResult, 'outcome' | 'cause'>> {
  readonly outcome: string;
  readonly cause?: string;
  readonly message: string;
  /** Identity of the client that terminated the workflow. */
  readonly terminatedBy?: string;
  /** Action of the sweep. */
  readonly sweep?: string;
}

/** Facts of a runner. */
export interface RunnerFacts extends WorkflowFacts {
  /** Answer to its status query. Absent if it has ended, or no worker answered. */
  readonly status?: RunnerStatus;
  /** State of its pod, read live. Absent: there is none, or it was not read. */
  readonly pod?: Pick<
    PodSnapshot,
    'name' | 'scheduled' | 'unschedulable' | 'problem' | 'createdAt' | 'startedAt'
  >;
  /** Reason why the pod was not read. */
  readonly podUnread?: string;
  readonly end?: RunnerEndFacts;
}

/** Facts of a set. */
export interface SetFacts extends WorkflowFacts {
  readonly name: string;
  /** Answer to its status query. Absent if it has ended, is not admitted, or no worker answered. */
  readonly status?: Pick<
    RunnerSetStatus,
    'waits' | 'runnerCounts' | 'scaleSet' | 'queueCheck' | 'replicas'
  >;
  /** RunnerSet resource that declares it. Absent: none. */
  readonly resource?: Pick<RunnerSetRef, 'namespace' | 'name'>;
  /** Message of a set that no worker has admitted. */
  readonly notAdmitted?: string;
  /** Pending activities of the listener of its scale set. */
  readonly listener: readonly PendingFact[];
  /** Its starting runners, the longest starting ones first. Not all of them. */
  readonly starting: readonly RunnerFacts[];
  readonly end?: { readonly outcome: string; readonly message: string };
}

/** Job that a set knows. */
export interface KnownJob {
  /** Workflow id of the set. */
  readonly set: string;
  readonly job: SetJobStatus;
}

/** Labels of a job. CI servers of different kinds compare them differently. */
export interface JobLabels {
  /** As the user wrote them. */
  readonly given: readonly string[];
  readonly normalized: Readonly<Record<CiServerKind, readonly string[]>>;
}

/** Request for an explanation of a job. */
export interface JobQuestion {
  readonly jobId: string;
  /** `owner/repo`. Absent: unknown. */
  readonly repository?: string;
  /** Absent: unknown. */
  readonly labels?: JobLabels;
  /** Records of the job. */
  readonly known: readonly KnownJob[];
  /** The running sets whose routing is known, with normalized labels. */
  readonly sets: readonly RoutableSet[];
  /** Workflow ids of running sets whose routing is unknown. */
  readonly unknownSets: readonly string[];
}

/** Facts of a job. */
export interface JobFacts extends JobQuestion {
  readonly servedBy?: ServingSet;
  /** The set of `servedBy`. */
  readonly set?: SetFacts;
  /** Runner that runs or ran the job. */
  readonly runner?: RunnerFacts;
  /** Number of sets that may know the job and did not answer. */
  readonly silentSets: number;
  /** Some of these sets. */
  readonly unanswered: readonly SetFacts[];
}

/** Facts of a run: its jobs that have not completed. */
export interface RunFacts {
  readonly runId: string;
  readonly repository: string;
  readonly known: readonly KnownJob[];
  /** Sets that have queued jobs of the run. Not all of them. */
  readonly sets: readonly SetFacts[];
  /** Number of further sets that have queued jobs of the run. */
  readonly unreadSets: number;
  /** Number of sets that did not answer. */
  readonly silentSets: number;
  /** Some of these sets. */
  readonly unanswered: readonly SetFacts[];
}

/** Facts of the subject of an explanation. */
export type WhyFacts =
  | ({ readonly kind: 'runner' } & RunnerFacts)
  | ({ readonly kind: 'set' } & SetFacts)
  | ({ readonly kind: 'job' } & JobFacts)
  | ({ readonly kind: 'run' } & RunFacts);
