import type { SweepLimits } from '../input/sweep.ts';
import { finding, skip, type Assessment } from './facts.ts';
import type { OwnedObject } from './ownedObject.ts';

/**
 * Assesses whether an object of a job is orphaned because its runner is gone. The first matching row
 * applies. Objects with an owner are not checked; they are deleted with it.
 * @param object - with the identity of its runner, if that is proven
 * @param used - whether the pod of its runner exists; the worker then sets the owner
 */
export function assessJobObject(
  object: OwnedObject,
  used: boolean,
  nowMs: number,
  { minAgeMs }: SweepLimits,
): Assessment {
  if (used) return skip('in_use');
  if (object.identity === undefined) return skip('foreign');
  if (object.onHold) return skip('on_hold');
  if (nowMs - object.createdAtMs < minAgeMs) return skip('too_young');
  if (object.terminating) return skip('in_transition');
  return finding(
    'orphaned_resource',
    `the ${object.kind} of a runner whose pod ${object.runnerPod} is gone`,
  );
}
