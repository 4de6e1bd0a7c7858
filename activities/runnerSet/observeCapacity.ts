import type { CapacityObservation, ObserveCapacityInput } from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { runnerSuffix } from '../../core/domain/setRunnerNames.ts';
import { unschedulableReason } from '../../core/domain/unschedulableReason.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';

/**
 * Reads which of the set's runners have a node. A runner without a pod counts as refused only if a
 * quota of its namespace is used up: otherwise its pod may not have been created yet.
 */
export async function observeCapacity(
  { compute }: Pick<ActivityPorts, 'compute'>,
  { set, namespace, runners }: ObserveCapacityInput,
): Promise<CapacityObservation> {
  return await withClusterErrors(`pods of the set ${set}`, async () => {
    const pods = (await compute.list({ cached: true })).filter(
      ({ workflowId, ended, deleted }) =>
        runnerSuffix(set, workflowId) !== undefined && !ended && !deleted,
    );
    const podOf = new Map(pods.map((pod) => [pod.workflowId, pod]));
    const without = runners.filter((workflowId) => podOf.get(workflowId)?.scheduled !== true);
    const quota = without.every((workflowId) => podOf.has(workflowId))
      ? undefined
      : await compute.exhaustedQuota?.({ ...omitUndefined({ namespace, like: pods.at(-1) }) });
    return {
      at: Date.now(),
      placed: pods.filter(({ scheduled }) => scheduled).length,
      unplaced: without.map((workflowId) => ({
        workflowId,
        ...omitUndefined({ reason: reasonOf(podOf.get(workflowId), quota) }),
      })),
    };
  });
}

function reasonOf(pod: PodView | undefined, quota: string | undefined): string | undefined {
  if (pod === undefined) return quota;
  const { unschedulable } = pod;
  return unschedulable === undefined
    ? undefined
    : `pods unschedulable (${unschedulableReason(unschedulable)})`;
}
