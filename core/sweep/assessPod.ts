import { ORPHANED_POD_MESSAGE } from '../contract/index.ts';
import { TERMINATION_OVERDUE_MS } from '../domain/podConditions.ts';
import { formatDuration } from '../domain/duration.ts';
import type { SweepLimits } from '../input/sweep.ts';
import { finding, OK, skip, type Assessment, type OwnerWorkflow } from './facts.ts';
import type { OwnedObject } from './ownedObject.ts';

/**
 * Assesses whether a pod is orphaned or expired. The first matching row applies. A running workflow
 * is responsible for its pods in any state, even while no worker runs.
 * @param owner - workflow that the pod was created for
 */
export function assessPod(
  object: OwnedObject,
  owner: OwnerWorkflow,
  nowMs: number,
  { minAgeMs, maxPodAgeMs }: SweepLimits,
): Assessment {
  const { pod, identity } = object;
  if (pod === undefined || identity === undefined) return skip('foreign');
  if (owner.state === 'running') return OK;
  if (object.onHold) return skip('on_hold');
  if (nowMs - object.createdAtMs < minAgeMs || nowMs - (owner.closedAtMs ?? 0) < minAgeMs)
    return skip('too_young');
  if (pod.terminating && !isOverdue(object, nowMs)) return skip('in_transition');
  // The eviction is about to end or delete the pod.
  if (pod.disruptionReason !== undefined && !pod.ended) return skip('in_transition');
  const ownerText = `its workflow ${identity.workflowId} ${owner.how ?? 'has ended'}`;
  if (!pod.ended) return finding('orphaned_pod', `${ORPHANED_POD_MESSAGE} (${ownerText})`);
  if (owner.state !== 'finished')
    return finding('orphaned_pod', `the runner has ended, and ${ownerText}`);
  const ageMs = nowMs - object.createdAtMs;
  return ageMs < maxPodAgeMs
    ? skip('retained')
    : finding('expired_pod', `it is ${formatDuration(ageMs)} old, and ${ownerText}`);
}

/**
 * Returns whether a terminating pod has exceeded its grace period. Only a deletion without grace
 * period removes it then.
 */
export function isOverdue({ pod }: OwnedObject, nowMs: number): boolean {
  return (
    pod?.terminationDeadline !== undefined &&
    Date.parse(pod.terminationDeadline) + TERMINATION_OVERDUE_MS <= nowMs
  );
}
