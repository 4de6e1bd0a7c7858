import type { SweepLimits } from '../input/sweep.ts';
import { finding, OK, skip, type Assessment, type OwnerWorkflow } from './facts.ts';
import type { OwnedObject } from './ownedObject.ts';

/**
 * Is this Secret, or claim, of no use to anybody any more? The first row that matches decides.
 * @param life - the one that it was made for
 * @param used - a pod of that life is there
 */
export function judgeResource(
  object: OwnedObject,
  life: OwnerWorkflow,
  used: boolean,
  nowMs: number,
  { minAgeMs }: SweepLimits,
): Assessment {
  const { identity, kind } = object;
  if (identity === undefined) return skip(kind === 'claim' ? 'outlives its runner' : 'not ours');
  if (life.state === 'running') return OK;
  if (object.held) return skip('held');
  if (nowMs - object.createdAtMs < minAgeMs || nowMs - (life.closedAtMs ?? 0) < minAgeMs)
    return skip('young');
  if (object.terminating) return skip('mid-flight');
  if (used) return skip('in use');
  return finding(
    'orphaned resource',
    `${kind === 'claim' ? 'the claim' : 'the Secret'} of a runner that is gone: its workflow ${identity.workflowId} ${life.how ?? 'has ended'}`,
  );
}
