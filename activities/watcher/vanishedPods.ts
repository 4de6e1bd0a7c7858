import { isMet, parseWaitActivityId, type PodCondition } from '../../core/domain/podConditions.ts';
import { gonePod } from '../pods.ts';
import type { Compute, WaitCompleter } from '../ports.ts';
import type { PodView } from '../../core/domain/pod.ts';

/**
 * What vanished while nobody watched left no event: the waits that are pending without a pod are held against a list taken after them,
 * because a pod may have been made since the watch's own.
 * @param listed - the watch's own list
 * @returns pods, and which of their conditions are waited for and hold
 */
export async function vanishedPods(compute: Compute, completer: WaitCompleter, listed: Iterable<PodView>): Promise<{ condition: PodCondition; pod: PodView }[]> {
  const waits: { workflowId: string; activityId: string }[] = [];
  for await (const wait of completer.pendingWaits(new Set(Array.from(listed, ({ workflowId }) => workflowId)))) waits.push(wait);
  if (waits.length === 0) return [];
  const now = new Map((await compute.list()).map((pod) => [pod.name, pod]));
  return waits.flatMap(({ workflowId, activityId }) => {
    const wait = parseWaitActivityId(activityId);
    if (wait === undefined) return [];
    const pod = now.get(wait.podName) ?? gonePod({ name: wait.podName, uid: '' }, workflowId);
    return isMet(wait.condition, pod, Date.now()) ? [{ condition: wait.condition, pod }] : [];
  });
}
