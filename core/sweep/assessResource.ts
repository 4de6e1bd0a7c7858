import type { SweepLimits } from '../input/sweep.ts';
import { finding, OK, skip, type Assessment, type OwnerWorkflow } from './facts.ts';
import type { OwnedObject } from './ownedObject.ts';

/**
 * Assesses whether a Secret or claim is orphaned. The first matching row applies.
 * @param owner - workflow that it was created for
 * @param used - whether a pod of that workflow exists
 */
export function assessResource(
  object: OwnedObject,
  owner: OwnerWorkflow,
  used: boolean,
  nowMs: number,
  { minAgeMs }: SweepLimits,
): Assessment {
  const { identity, kind } = object;
  if (identity === undefined) return skip(kind === 'claim' ? 'shared_claim' : 'foreign');
  if (owner.state === 'running') return OK;
  if (object.onHold) return skip('on_hold');
  if (nowMs - object.createdAtMs < minAgeMs || nowMs - (owner.closedAtMs ?? 0) < minAgeMs)
    return skip('too_young');
  if (object.terminating) return skip('in_transition');
  if (used) return skip('in_use');
  return finding(
    'orphaned_resource',
    `${kind === 'claim' ? 'the claim' : 'the Secret'} of a workflow that has ended: ${identity.workflowId} ${owner.how ?? 'has ended'}`,
  );
}
