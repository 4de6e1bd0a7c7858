/** Facts on which a sweep decides, from its three lists. Plain data. */
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
  /** Time of the end (ms since the epoch). */
  readonly closedAtMs?: number;
  /** Description of the end for people: `was terminated (by hand)`. */
  readonly how?: string;
}

/** Running runner workflow of this location. Times are in ms since the epoch. */
export interface RunnerWorkflow {
  readonly workflowId: string;
  /** ID of the current run. */
  readonly runId: string;
  readonly taskQueue: string;
  readonly startedAtMs: number;
  /** Phase as visibility lists it. */
  readonly phase: RunnerPhase;
  /** Name of its current runner at the CI server. */
  readonly runnerName: string;
  /** Pods of the workflow. */
  readonly pods: readonly OwnedObject[];
  /** Whether a worker polls its task queues. */
  readonly hasPoller: boolean;
  /** The job of a step. A later run with the ID of that job counts as the job. */
  readonly job?: OwnerWorkflow & { readonly workflowId: string };
  /** Registration of its pod's runner in the list of the CI server. */
  readonly registration?: ObservedRegistration;
  /** Whether its workflow is paused in Temporal. */
  readonly paused?: true;
  /** Whether another pod of this workflow will resume what it was running. */
  readonly willResume: boolean;
  /**
   * Time since when its workflow task waits for a worker (ms since the epoch). Absent if none is
   * waiting.
   */
  readonly taskPendingSinceMs?: number;
}

/** A registration at the CI server, in the list of a scope. */
export interface ObservedRegistration extends CredentialScope {
  readonly id: string;
  readonly name: string;
  readonly online: boolean;
  readonly busy: boolean;
  /**
   * Proof that the registration belongs to this location: its label, or Temporal's record of a
   * runner workflow with that name. Absent if there is none.
   */
  readonly proof?: 'label' | 'record';
  /** Whether its runner workflow is running. */
  readonly hasRunner: boolean;
  /** Whether a pod of its runner workflow exists. */
  readonly hasPod: boolean;
  /** Whether its workflow runs and has replaced its runner. */
  readonly superseded?: true;
  /** ID of a `deregistration` workflow that is removing the registration and has a worker. */
  readonly deregistrationId?: string;
}

/** Result of the check of one object. */
export type Assessment =
  /** The object has no problem. */
  | { readonly kind: 'fine' }
  | { readonly kind: 'skip'; readonly why: SweepSkip }
  | { readonly kind: 'finding'; readonly as: FindingKind; readonly reason: string };

/** Assessment of an object without a problem. */
export const OK: Assessment = { kind: 'fine' };
/** Returns the assessment of an object that is left alone for this reason. */
export const skip = (reason: SweepSkip): Assessment => ({ kind: 'skip', why: reason });
/**
 * Returns the assessment of an object that is to be repaired.
 * @param reason - one sentence for the report
 */
export const finding = (as: FindingKind, reason: string): Assessment => ({
  kind: 'finding',
  as,
  reason,
});
