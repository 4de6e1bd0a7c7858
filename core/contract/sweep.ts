/** Public names of the sweep, which finds and repairs what lives, pods and registrations left behind: its input and its report. */
import type { Durations } from '../domain/duration.ts';

export const SWEEP_WORKFLOW = 'sweep';

/** Why a runner's pod was stopped whose workflow had ended before it. */
export const ORPHANED_POD_MESSAGE =
  'the runner was still alive although its workflow had ended; forced to fail';
/** Why a runner's workflow was terminated whose pod was gone, and which no worker took up again. */
export const STUCK_RUNNER_MESSAGE = 'worker never came back; forced to fail';

/** Why a job's step was stopped that had outlived its job. */
export const ORPHANED_STEP_MESSAGE = 'the step was still alive although its job had ended; stopped';

/** Why a runner was replaced that was idle by its own word. */
export const UNRESPONSIVE_RUNNER_MESSAGE =
  'the CI server has it offline, while its pod says that it is online and idle';

/** What a sweep repairs. */
export const FINDING_KINDS = [
  'orphaned_pod',
  'orphaned_registration',
  'stuck_runner',
  'unresponsive_runner',
  'orphaned_step',
  'expired_pod',
  'orphaned_resource',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** Why something that was looked at was left alone. */
export const SWEEP_SKIPS = [
  /** Younger than `minAge`, or its workflow ended less than that ago. */
  'too_young',
  /** A person's annotation `holdfast.dev/hold`. */
  'on_hold',
  /** It is coming up, on its way out, or being evicted. */
  'in_transition',
  /** Nobody works on its workflow just now, and its pod lives: its job may run. */
  'no_worker',
  /** Its workflow has lost its pod, and goes on with another one when a worker is back. */
  'will_resume',
  /** Finished in good order; it stays until it is `maxPodAge` old. */
  'retained',
  /** A claim that is named in a runner's input, as those of a set's slots are: it outlives its runners. */
  'shared_claim',
  /** A Secret or claim that a pod still uses; what a job has made beside a runner that is there. */
  'in_use',
  /** Its workflow is in another Temporal namespace than this sweep's: see `otherTemporal` in the report. */
  'other_temporal',
  /** A registration, or what a job has made, that nothing proves to be this installation's. */
  'foreign',
  /** A runner that is online, or runs a job. */
  'online_or_busy',
  /** An idle runner that the CI server has offline, as it has more than half of that scope's: it is the CI server's view that is wrong, or the way to it. */
  'mass_offline',
  /** A workflow `deregistration` is at it. */
  'handed_off',
  /** A scope of lives without pod and Secret, which the credential cannot see (any more). */
  'scope_not_visible',
  /** A running life that is older than `maxRunnerAge`: its end is its own affair (`timeouts`). */
  'long_running',
  /** The second look, at live sources, did not agree. */
  'changed',
  /** There is more than one sweep repairs. */
  'deferred',
] as const;
export type SweepSkip = (typeof SWEEP_SKIPS)[number];

/** Durations by which a sweep judges, with the defaults that are right for production. */
export const SWEEP_LIMITS = {
  /** What is younger is left alone. @default "30s" */
  minAge: '30s',
  /** How long the pod of a runner that finished in good order may stay. @default "24h" */
  maxPodAge: '24h',
  /** Running lives that are older are counted in the report. @default "7d" */
  maxRunnerAge: '7d',
  /** How old the CI server's lists may be: a registration is removed so long after it was marked at the earliest. @default "1m" */
  listMaxAge: '1m',
  /** An idle runner is replaced so long after it was marked as one that the CI server has offline, at the earliest. @default "4m" */
  unresponsiveAfter: '4m',
  /** A stuck runner's workflow is terminated when its task queues had no worker for so long. @default "6h" */
  terminateAfter: '6h',
} as const;

/** Input of a sweep. */
export interface SweepInput extends Durations<typeof SWEEP_LIMITS> {
  /** Looks and reports; marks and repairs nothing. @default false */
  dryRun?: boolean;
  /** Goes on where it would stop: it condemns more than half of ten or more pods, or Temporal knows no life of this place. @default false */
  force?: boolean;
  /**
   * ID of a Temporal namespace that is no more, or is this one under its earlier ID: what it has
   * left is swept as this installation's own, pods that live included.
   */
  takeOver?: string;
  /** Scopes at the CI server to look at, besides those of the lives and pods that are known. Each names exactly one of the three. */
  scopes?: SweepScope[];
}

export interface SweepScope {
  organization?: string;
  /** `owner/repo`. */
  repository?: string;
  enterprise?: string;
  /** @default "default" */
  credential?: string;
}

/**
 * A first look's finding about what cannot carry a mark itself: a registration or a workflow. Pods, Jobs, Secrets and claims carry theirs as the
 * annotation `holdfast.dev/sweep-mark`.
 */
export interface SweepMark {
  kind: 'orphaned_registration' | 'stuck_runner' | 'unresponsive_runner' | 'orphaned_step';
  /** What it is about: `organization acme#17`, a runner's name, or a workflow id and its run id. */
  key: string;
  /** When it was found first (ISO 8601). */
  since: string;
  /** Of a stuck runner: since when every sweep found its task queues without a worker (ISO 8601). */
  unpolledSince?: string;
}

/** One finding, and what was done about it. */
export interface SweepFinding {
  kind: FindingKind;
  /** Its name. */
  name: string;
  /** A namespace, a scope such as `organization acme`, or a task queue. */
  location: string;
  /** One sentence for people. */
  reason: string;
  /**
   * `found`: in a dry run, or where the sweep stopped. `marked`: first look. `waits`: marked before, not yet to be repaired (a zombie that was
   * signalled, a registration whose list may be old, a runner that may yet be heard of).
   */
  status: 'found' | 'marked' | 'waits' | 'repaired' | 'failed';
  /** Of a zombie: its workflow. Of a pod: the one that it belonged to. */
  workflowId?: string;
  /** What went wrong. With `repaired`: what goes on (a busy registration that was handed on). */
  note?: string;
}

export interface SweepCounts {
  found: number;
  marked: number;
  repaired: number;
  failed: number;
}

/** What a sweep did: the result of the workflow, and what the command prints. */
export interface SweepReport {
  /** Where: `compute/cluster/installation/namespace`. */
  location: string;
  /** When it began (ISO 8601). */
  at: string;
  tookMs: number;
  dryRun: boolean;
  /** Absent: could not be counted. */
  examined: {
    runners?: number;
    pods?: number;
    secrets?: number;
    claims?: number;
    scopes?: number;
    registrations?: number;
  };
  /** Lists that could not be had, or not to their end. Where there is one, nothing was touched. */
  incompleteLists: { list: string; reason: string }[];
  /** Lists that this process may not have and can do without: Secrets (those of jobs have a list of their own) and claims, for a worker. */
  skippedLists: { list: string; reason: string }[];
  /** Why nothing was touched, though all lists were there. */
  aborted?: string;
  counts: Record<FindingKind, SweepCounts>;
  skipped: Partial<Record<SweepSkip, number>>;
  /** Pods, Secrets and claims by the ID of the other Temporal namespace that their workflows are in. */
  otherTemporal?: { namespaceId: string; objects: number }[];
  /** At most 200: failed ones first. */
  findings: SweepFinding[];
  /** Findings beyond those. */
  omittedFindings: number;
  /** To be handed to the next sweep, at most 500. */
  marks: SweepMark[];
}
