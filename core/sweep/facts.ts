/** What a sweep knows, from its three lists. Plain data. */
import type { RunnerPhase, SweepSkip, FindingKind } from '../contract/index.ts';
import type { CredentialScope } from '../input/sweep.ts';
import type { OwnedObject } from './ownedObject.ts';

/**
 * The life that an object was made for, by Temporal's own record of it. `finished`: with a verdict; `broken off`: terminated, failed or timed
 * out; `unknown`: Temporal has no record of it.
 */
export interface OwnerWorkflow {
  readonly state: 'running' | 'finished' | 'broken off' | 'unknown';
  /** ms since the epoch. */
  readonly closedAtMs?: number;
  /** For people: `was terminated (by hand)`. */
  readonly how?: string;
}

/** A running life of this place. Times in ms since the epoch. */
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
  /** Does any worker poll its task queues? */
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

/** What is thought of one thing that was looked at. */
export type Assessment =
  /** Nothing is wrong with it. */
  | { readonly kind: 'fine' }
  | { readonly kind: 'skip'; readonly why: SweepSkip }
  | { readonly kind: 'condemned'; readonly as: FindingKind; readonly reason: string };

export const OK: Assessment = { kind: 'fine' };
export const skip = (reason: SweepSkip): Assessment => ({ kind: 'skip', why: reason });
export const finding = (as: FindingKind, reason: string): Assessment => ({
  kind: 'condemned',
  as,
  reason,
});
