import type { PodView } from '../../core/domain/pod.ts';

/** Returns the final state of a pod that does not exist any more. */
export function deletedPodView(last: PodView): PodView {
  return { ...last, ended: true, deleted: true };
}
