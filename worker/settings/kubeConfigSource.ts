import type { KubeConfigSource } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { HoldfastConfig } from './config.ts';

/** Maps the worker's settings to the options of the Kubernetes adapter. */
export function kubeConfigSource({
  kubeconfig,
  context,
}: Extract<HoldfastConfig['compute'], { kind: 'kubernetes' }>): KubeConfigSource {
  return omitUndefined({ path: kubeconfig, context });
}
