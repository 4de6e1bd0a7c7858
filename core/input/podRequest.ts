/** From a runner to the pod it asks for. Pure. */
import type { ParsedRunner } from './runner.ts';
import type { PodRequest } from '../domain/pod.ts';

/** Everything of the request but whose pod it is. */
export function podOf(spec: ParsedRunner): Omit<PodRequest, 'identity'> {
  return {
    ...spec.pod,
    labels: spec.set === undefined ? {} : { 'holdfast.dev/set': spec.set },
    terminationGracePeriodSeconds: spec.gracePeriodSeconds,
  };
}
