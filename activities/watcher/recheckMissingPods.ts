import type { PodView } from '../../core/domain/pod.ts';
import type { Compute, WaitCompleter } from '../ports.ts';

/**
 * What vanished while nobody watched left no event: the waits that are pending without a pod have to look again. Being missing from a list
 * is no more than that, because a list may be older than a pod, or its selector not find it.
 * @param listed - the watch's own list
 */
export async function recheckMissingPods(
  compute: Compute,
  completer: WaitCompleter,
  listed: Iterable<PodView>,
): Promise<void> {
  const known = new Set(Array.from(listed, ({ workflowId }) => workflowId));
  for await (const { workflowId, activityId } of completer.pendingWaits(
    await compute.location(),
    known,
  )) {
    await completer.requestRecheck(
      workflowId,
      activityId,
      'the pod is not in a new list of all: looked at live',
    );
  }
}
