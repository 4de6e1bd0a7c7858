/** Objects of one installation in a cluster, for the sweep. Plain data. */
import type { PodView, RunnerIdentity } from '../domain/pod.ts';
import type { CredentialScope } from '../input/sweep.ts';

/** Kind of an object that an installation owns. */
export type OwnedKind = 'pod' | 'secret' | 'claim' | JobObjectKind;

/**
 * Kinds of objects that a runner's container hooks create for a job and that have no owner
 * reference: the job's pod, the pods of container steps, and their Secrets. Objects with an owner
 * are deleted with it.
 */
export const JOB_OBJECT_KINDS = ['job pod', 'container step', 'job secret'] as const;
/** Kind of an object that container hooks create for a job. */
export type JobObjectKind = (typeof JOB_OBJECT_KINDS)[number];

/** An object of this installation at one moment. */
export interface OwnedObject {
  readonly kind: OwnedKind;
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Time of creation (ms since the epoch). */
  readonly createdAtMs: number;
  /**
   * Runner for which the object was created. For a claim: the runner workflow, with attempt 0.
   * Absent if the object belongs to no particular runner or to a job.
   */
  readonly identity?: RunnerIdentity;
  /** For an object of a job: the name of its runner's pod, as the container hooks recorded it. */
  readonly runnerPod?: string;
  /** Registration of the runner, as recorded on the object. */
  readonly registration?: OwnedRegistration;
  /** Whether a person has excluded the object from the sweep. */
  readonly onHold: boolean;
  /** Whether the object is being deleted. */
  readonly terminating: boolean;
  /** Mark of the last sweep. */
  readonly mark?: string;
  /** State of a pod. */
  readonly pod?: PodView;
  /** For a pod: maximum duration of a job of its runner (ms). */
  readonly jobTimeoutCapMs?: number;
}

/** Registration of a runner, as recorded on its objects. */
export interface OwnedRegistration extends Partial<CredentialScope> {
  readonly name: string;
  readonly id?: string;
}
