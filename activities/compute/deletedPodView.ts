import type { PodView } from '../../core/domain/pod.ts';

/** The last view of a pod that is there no more. */
export function deletedPodView(last: PodView): PodView {
  return { ...last, ended: true, deleted: true };
}
