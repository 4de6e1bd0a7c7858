import type { KubeConfigSource } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { HoldfastConfig } from './config.ts';

/** The settings of the worker in the words of the Kubernetes adapter. */
export function kubeConfigSource({
  kubeconfig,
  context,
}: Extract<HoldfastConfig['compute'], { kind: 'kubernetes' }>): KubeConfigSource {
  return omitUndefined({ path: kubeconfig, context });
}
