import type { PodView } from '../../core/domain/pod.ts';
import type { Compute } from '../ports/compute.ts';
import type { WaitCompleter } from '../ports/waitCompleter.ts';

/**
 * Requests a live recheck of all pending waits whose pod is missing from the list. A pod that was
 * deleted while nothing watched left no event. A missing pod proves nothing by itself: the list may
 * be older than the pod, or the selector may not match it.
 * @param listed - pods in the list of the watch
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
      'the pod is missing from a new list of all pods: read live',
    );
  }
}
