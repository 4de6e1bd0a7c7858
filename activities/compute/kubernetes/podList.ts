/** Lists pods page by page. */
import type { V1Pod } from '@kubernetes/client-node';
import { defined } from '../../../core/defined.ts';
import type { ApiServer } from './apiServer.ts';

/** Pods per request. */
const PAGE = 500;

interface PodPage {
  readonly kind?: string;
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly V1Pod[] | null;
}

export interface PodListOptions {
  readonly path: string;
  readonly labelSelector: string;
  readonly signal?: AbortSignal;
  /** Called for each pod in turn, so that no more than a page of whole pods is in memory. */
  readonly onPod: (pod: V1Pod) => void;
}

/**
 * @returns the resource version from which a watch continues the list
 * @throws ApiError or a network error; also when the answer is no list of pods: an empty list must never stand in for a failed one
 */
export async function listPods(api: ApiServer, options: PodListOptions): Promise<string> {
  let token: string | undefined;
  for (;;) {
    const page: PodPage = await api.call<PodPage>({
      verb: 'list',
      resource: 'pods',
      path: options.path,
      query: { labelSelector: options.labelSelector, limit: PAGE, continue: token },
      ...defined({ signal: options.signal }),
    });
    const resourceVersion = page.metadata?.resourceVersion;
    if (page.kind !== 'PodList' || !resourceVersion) throw new Error(`The API server answered a list of pods with ${page.kind ?? 'something else'}`);
    for (const pod of page.items ?? []) options.onPod(pod);
    token = page.metadata?.continue;
    if (!token) return resourceVersion;
  }
}
