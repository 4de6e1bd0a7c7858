/** Lists pods page by page. */
import type { V1Pod } from '@kubernetes/client-node';
import type { ApiServer } from './apiServer.ts';
import { listObjects, type ObjectListOptions } from './objectList.ts';

/** Options of {@link listPods}. */
export type PodListOptions = Pick<ObjectListOptions<V1Pod>, 'path' | 'labelSelector' | 'signal'> & {
  /** Called for each pod in turn, so that at most one page is in memory. */
  readonly onPod: (pod: V1Pod) => void;
};

/** Lists pods as {@link listObjects} does. */
export async function listPods(
  api: ApiServer,
  { onPod, ...options }: PodListOptions,
): Promise<string> {
  return await listObjects<V1Pod>(api, 'PodList', {
    ...options,
    resource: 'pods',
    onObject: onPod,
  });
}
