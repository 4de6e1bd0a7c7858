/** Lists objects page by page. */
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { ApiServer } from './apiServer.ts';

/** Objects per request. */
const PAGE = 500;

interface Page<T> {
  readonly kind?: string;
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[] | null;
}

/** Options of {@link listObjects}. */
export interface ObjectListOptions<T> {
  readonly resource: string;
  readonly path: string;
  /** @default all objects */
  readonly labelSelector?: string;
  /**
   * Whether to read only the metadata of the objects.
   * @default false
   */
  readonly metadataOnly?: boolean;
  readonly signal?: AbortSignal;
  /** Called for each object in turn, so that at most one page is in memory. */
  readonly onObject: (object: T) => void;
}

/**
 * Lists all objects of a resource page by page.
 * @param listKind - the kind of the list, such as `PodList`
 * @returns the resource version from which a watch continues
 * @throws ApiError or a network error
 * @throws Error if the response has another kind: it must never count as an empty list
 */
export async function listObjects<T>(
  api: ApiServer,
  listKind: string,
  { resource, path, labelSelector, metadataOnly = false, signal, onObject }: ObjectListOptions<T>,
): Promise<string> {
  let token: string | undefined;
  for (;;) {
    const query = { limit: PAGE, continue: token, ...omitUndefined({ labelSelector }) };
    const page = await api.call<Page<T>>({
      verb: 'list',
      resource,
      path,
      query,
      metadataOnly,
      ...omitUndefined({ signal }),
    });
    const resourceVersion = page.metadata?.resourceVersion;
    if (page.kind !== listKind || !resourceVersion)
      throw new Error(
        `The API server answered a list of ${resource} with ${page.kind ?? 'something else'}`,
      );
    for (const object of page.items ?? []) onObject(object);
    token = page.metadata?.continue;
    if (!token) return resourceVersion;
  }
}
