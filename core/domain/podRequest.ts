/** From a runner to the pod it asks for. Pure. */
import type { PodRequest } from './pod.ts';

/** What the pod needs to know of its runner. */
interface PodsRunner {
  readonly pod: Omit<PodRequest, 'identity' | 'labels' | 'terminationGracePeriodSeconds'>;
  readonly set?: string;
  readonly gracePeriodSeconds: number;
}

/** Everything of the request but whose pod it is. */
export function podOf({ pod, set, gracePeriodSeconds }: PodsRunner): Omit<PodRequest, 'identity'> {
  return { ...pod, labels: set === undefined ? {} : { 'holdfast.dev/set': set }, terminationGracePeriodSeconds: gracePeriodSeconds };
}
