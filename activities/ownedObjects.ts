/** What one installation owns in a cluster, for the sweep: to be listed, marked and deleted object by object. */
import type { SweepMark } from '../core/contract/index.ts';
import type { SeenScope } from '../core/input/sweep.ts';
import type { PodView, RunnerIdentity, StopReason } from '../core/domain/pod.ts';

export type OwnedKind = 'pod' | 'secret' | 'claim';

/** One object that carries this installation's label, at one moment. */
export interface OwnedObject {
  readonly kind: OwnedKind;
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** ms since the epoch. */
  readonly createdAtMs: number;
  /** The runner that it was made for; of a claim: the life, with attempt 0. Absent: none in particular. */
  readonly identity?: RunnerIdentity;
  /** What is noted of the runner's registration. */
  readonly registration?: OwnedRegistration;
  /** A person's "do not touch". */
  readonly held: boolean;
  /** The text that the last sweep has left. */
  readonly mark?: string;
  /** Of a pod. */
  readonly pod?: PodView;
  /** Of a pod: how long a job of its runner may take at most, in ms. */
  readonly jobTimeoutCapMs?: number;
  /** Of a pod: the claims that it mounts. */
  readonly claims?: readonly string[];
}

export interface OwnedRegistration extends Partial<SeenScope> {
  readonly name: string;
  readonly id?: number;
}

export interface OwnedObjects {
  /** All of them, or none: @throws ComputeError where the list cannot be had to its end */
  list(kind: OwnedKind, signal?: AbortSignal): Promise<OwnedObject[]>;
  /** The object as it is now. `undefined`: it is gone, or another one has its name. @throws ComputeError */
  look(object: Pick<OwnedObject, 'kind' | 'name' | 'namespace' | 'uid'>): Promise<OwnedObject | undefined>;
  /** Leaves a text on the object for people and for the next sweep, or with `null` takes it away. Gone: fine. @throws ComputeError */
  mark(object: OwnedObject, text: string | null): Promise<void>;
  /** Asks for the deletion of exactly this object; of a Secret or claim, as it was seen. @throws ComputeError; `unavailable` where it has changed since */
  delete(object: OwnedObject, how?: { readonly gracePeriodSeconds?: number; readonly announce?: StopReason; readonly reason?: string }): Promise<'gone' | 'terminating'>;
  /** The marks that {@link saveMarks} has kept in the cluster: for a sweep without a worker. None yet: empty. @throws ComputeError */
  loadMarks(): Promise<SweepMark[]>;
  /** @throws ComputeError */
  saveMarks(marks: readonly SweepMark[]): Promise<void>;
}
