/**
 * The port with which the sweep lists, marks and deletes the objects of one installation in a
 * cluster.
 */
import type { SweepMark } from '../../core/contract/index.ts';
import type { StopReason } from '../../core/domain/pod.ts';
import type { OwnedKind, OwnedObject } from '../../core/sweep/ownedObject.ts';

/** Options of {@link OwnedObjects.delete}. */
export interface OwnedDeletion {
  /**
   * Grace period of a pod (s). 0 deletes it immediately.
   * @default the pod's terminationGracePeriodSeconds
   */
  readonly gracePeriodSeconds?: number;
  /** Reason passed to the pod's supervisor before the deletion. */
  readonly stopReason?: StopReason;
}

/** The objects of one installation in a cluster, for the sweep. */
export interface OwnedObjects {
  /**
   * Returns the time by the cluster's clock (ms since the epoch), according to the latest
   * response. Workers may have different clocks, and each reads the marks of the others.
   */
  now(): number;
  /**
   * Returns all objects of a kind. Lists of objects of jobs include those of other installations.
   * @throws ComputeError if the list is incomplete
   */
  list(kind: OwnedKind, signal?: AbortSignal): Promise<OwnedObject[]>;
  /**
   * Returns the current state of the object.
   * @returns `undefined` if it is deleted, belongs to another installation, or has another UID than
   * `uid`
   * @throws ComputeError
   */
  get(
    object: Pick<OwnedObject, 'kind' | 'name' | 'namespace'> & { readonly uid?: string },
  ): Promise<OwnedObject | undefined>;
  /**
   * Writes a mark on the object for people and for the next sweep, or removes it with `null`. A
   * deleted object is ignored.
   * @throws ComputeError
   */
  mark(object: OwnedObject, text: string | null): Promise<void>;
  /**
   * Requests the deletion of exactly this object. A Secret or claim must be unchanged since it was
   * read.
   * @throws ComputeError `unavailable` if it has changed since
   */
  delete(object: OwnedObject, how?: OwnedDeletion): Promise<'deleted' | 'terminating'>;
  /**
   * Returns the marks that {@link saveMarks} stored in the cluster, for a sweep without a worker.
   * The list is empty if there are none.
   * @throws ComputeError
   */
  loadMarks(): Promise<SweepMark[]>;
  /**
   * Stores the marks in the cluster.
   * @throws ComputeError
   */
  saveMarks(marks: readonly SweepMark[]): Promise<void>;
}
