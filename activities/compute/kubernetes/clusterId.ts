import type { V1Namespace } from '@kubernetes/client-node';
import type { ApiServer } from './apiServer.ts';
import { toComputeError } from './errors.ts';

/** Namespace that every cluster has from its creation and that cannot be deleted. */
export const CLUSTER_ID_NAMESPACE = 'kube-system';

/**
 * Returns the UID of the namespace kube-system, which identifies the cluster independent of its
 * address.
 * @throws ComputeError
 */
export async function clusterId(api: ApiServer): Promise<string> {
  try {
    const { metadata } = await api.call<V1Namespace>({
      verb: 'get',
      resource: 'namespaces',
      path: `/api/v1/namespaces/${CLUSTER_ID_NAMESPACE}`,
    });
    if (!metadata?.uid) throw new Error('the namespace kube-system has no UID');
    return metadata.uid;
  } catch (error) {
    throw toComputeError(error, 'find out which cluster this is (get namespace kube-system)');
  }
}
