import type { SweepLimits } from '../input/sweep.ts';
import { finding, skip, type Assessment } from './facts.ts';
import type { OwnedObject } from './ownedObject.ts';

/**
 * Was this made for a job whose runner is gone? The first row that matches decides. What has an owner is not asked about: it goes with that.
 * @param object - with the identity of the runner that it was made for, where that is proven
 * @param used - its runner's pod is there: that life's worker gives it its owner
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
