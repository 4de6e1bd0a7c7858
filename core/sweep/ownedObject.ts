/** What one installation owns in a cluster, as the sweep sees it. Plain data. */
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

/** One object that carries this installation's label, at one moment. */
export interface OwnedObject {
  readonly kind: OwnedKind;
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** ms since the epoch. */
  readonly createdAtMs: number;
  /** The runner that it was made for; of a claim: the life, with attempt 0. Absent: none in particular, or it is a job's. */
  readonly identity?: RunnerIdentity;
  /** Of what is a job's: the name of its runner's pod, as the hooks have noted it. */
  readonly runnerPod?: string;
  /** What is noted of the runner's registration. */
  readonly registration?: OwnedRegistration;
  /** A person's "do not touch". */
  readonly onHold: boolean;
  /** It is being deleted. */
  readonly terminating: boolean;
  /** The text that the last sweep has left. */
  readonly mark?: string;
  /** Of a pod. */
  readonly pod?: PodView;
  /** Of a pod: how long a job of its runner may take at most, in ms. */
  readonly jobTimeoutCapMs?: number;
}

/** Registration of a runner, as recorded on its objects. */
export interface OwnedRegistration extends Partial<CredentialScope> {
  readonly name: string;
  readonly id?: string;
}
