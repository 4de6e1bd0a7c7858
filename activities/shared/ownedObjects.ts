/** The port by which the sweep lists, marks and deletes what one installation owns in a cluster, object by object. */
import type { SweepMark } from '../../core/contract/index.ts';
import type { StopReason } from '../../core/domain/pod.ts';
import type { OwnedKind, OwnedObject } from '../../core/sweep/ownedObject.ts';

export interface OwnedDeletion {
  /** @default the pod's own; 0: at once */
  readonly gracePeriodSeconds?: number;
  /** Told to the pod's supervisor first. */
  readonly stopReason?: StopReason;
}

export interface OwnedObjects {
  /** All of them, or none; of what is a job's, whoever's it is. @throws ComputeError where the list cannot be had to its end */
  list(kind: OwnedKind, signal?: AbortSignal): Promise<OwnedObject[]>;
  /** The object as it is now. `undefined`: it is gone, or is not this installation's, or with `uid`: another one has its name. @throws ComputeError */
  get(
    object: Pick<OwnedObject, 'kind' | 'name' | 'namespace'> & { readonly uid?: string },
  ): Promise<OwnedObject | undefined>;
  /** Leaves a text on the object for people and for the next sweep, or with `null` takes it away. Gone: fine. @throws ComputeError */
  mark(object: OwnedObject, text: string | null): Promise<void>;
  /** Asks for the deletion of exactly this object; of a Secret or claim, as it was seen. @throws ComputeError; `unavailable` where that has changed since */
  delete(object: OwnedObject, how?: OwnedDeletion): Promise<'deleted' | 'terminating'>;
  /** The marks that {@link saveMarks} has kept in the cluster: for a sweep without a worker. None yet: empty. @throws ComputeError */
  loadMarks(): Promise<SweepMark[]>;
  /** @throws ComputeError */
  saveMarks(marks: readonly SweepMark[]): Promise<void>;
}
