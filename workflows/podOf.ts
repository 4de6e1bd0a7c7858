/** From a runner to the pod it asks for. Pure. */
import type { PodRequest } from '../activities/ports.ts';
import type { ParsedRunner } from './input.ts';

/** Everything of the request but whose pod it is. */
export function podOf(spec: ParsedRunner): Omit<PodRequest, 'identity'> {
  return {
    ...spec.pod,
    labels: spec.set === undefined ? {} : { 'holdfast.dev/set': spec.set },
    terminationGracePeriodSeconds: spec.gracePeriodSeconds,
  };
}
