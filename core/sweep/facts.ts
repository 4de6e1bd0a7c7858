/** Facts that a sweep decides on, from its three lists. Plain data. */
import type { RunnerPhase, SweepSkip, FindingKind } from '../contract/index.ts';
import type { CredentialScope } from '../input/sweep.ts';
import type { OwnedObject } from './ownedObject.ts';

/**
 * Runner workflow that an object was created for, from Temporal's record. `finished`: it completed
 * with a verdict. `broken off`: it was terminated, failed or timed out. `unknown`: Temporal has no
 * record of it.
 */
export interface OwnerWorkflow {
  readonly state: 'running' | 'finished' | 'broken off' | 'unknown';
  /** ms since the epoch. */
  readonly closedAtMs?: number;
  /** For people: `was terminated (by hand)`. */
  readonly how?: string;
}

/** Running runner workflow of this location. Times are in ms since the epoch. */
export interface RunnerWorkflow {
  readonly workflowId: string;
  /** Of the run that runs. */
  readonly runId: string;
  readonly taskQueue: string;
  readonly startedAtMs: number;
  /** As lists show it. */
  readonly phase: RunnerPhase;
  /** Its present runner's, at the CI server. */
  readonly runnerName: string;
  /** Its pods. */
  readonly pods: readonly OwnedObject[];
  /** Whether a worker polls its task queues. */
  readonly hasPoller: boolean;
  /** Of a step: its job. A later run with that job's id counts as that job. */
  readonly job?: OwnerWorkflow & { readonly workflowId: string };
  /** That of its pod's runner, in the CI server's list. */
  readonly registration?: ObservedRegistration;
  /** What it was running is taken up again by another pod of this life. */
  readonly willResume: boolean;
  /** Since when its workflow task waits for a worker; absent: none does. */
  readonly taskPendingSinceMs?: number;
}

/** A registration at the CI server, in the list of a scope. */
export interface ObservedRegistration extends CredentialScope {
  readonly id: string;
  readonly name: string;
  readonly online: boolean;
  readonly busy: boolean;
  /** What proves it to be this place's: its label, or Temporal's record of a life with that name. Absent: nothing does. */
  readonly proof?: 'label' | 'record';
  /** Its life runs. */
  readonly hasRunner: boolean;
  /** A pod of its life is there. */
  readonly hasPod: boolean;
  /** Id of a workflow `deregistration` that is at it, and has a worker. */
  readonly deregistrationId?: string;
}

/** Result of the check of one object. */
export type Assessment =
  /** Nothing is wrong with it. */
  | { readonly kind: 'fine' }
  | { readonly kind: 'skip'; readonly why: SweepSkip }
  | { readonly kind: 'condemned'; readonly as: FindingKind; readonly reason: string };

/** Assessment of an object without a problem. */
export const OK: Assessment = { kind: 'fine' };
/** Returns the assessment of an object that is left alone for this reason. */
export const skip = (reason: SweepSkip): Assessment => ({ kind: 'skip', why: reason });
/**
 * Returns the assessment of an object that is to be repaired.
 * @param reason - one sentence for the report
 */
export const finding = (as: FindingKind, reason: string): Assessment => ({
  kind: 'condemned',
  as,
  reason,
});
