/** Sends one watch request for objects of a kind, from a resource version on. */
import { LineSplitter } from '../../../core/domain/lineSplitter.ts';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { ApiError, type ApiServer } from './apiServer.ts';

/** One event of a watch. */
export interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: T;
}

/** Options of {@link openWatch}. */
export interface WatchOptions {
  /** Resource for metrics and errors, such as `pods`. */
  readonly resource: string;
  /** Path, such as `/api/v1/namespaces/ci/pods`, or `/api/v1/pods` for all namespaces. */
  readonly path: string;
  /** @default all objects */
  readonly labelSelector?: string;
  readonly resourceVersion: string;
  /** Time without data after which the connection fails (ms). */
  readonly watchTimeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Opens a watch. The request asks the server to end it after 5/6 of `watchTimeoutMs`. Two seconds
 * before its end, the server sends a bookmark. The resource version then stays recent even without
 * events, which avoids a "410 Gone" and a new list:
 * https://github.com/kubernetes/kubernetes/blob/v1.34.3/staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go
 * (nextBookmarkTime).
 *
 * @returns the events, as soon as the server has accepted the watch. They end when the server ends
 * the watch normally
 * @throws ApiError with the code and the Status object of an ERROR event (410: the resource version
 * is too old) or of the response
 * @throws the error of undici for a lost or silent connection
 */
export async function openWatch<T>(
  api: ApiServer,
  options: WatchOptions,
): Promise<AsyncIterable<WatchEvent<T>>> {
  const stream = await api.open(
    {
      verb: 'watch',
      resource: options.resource,
      path: options.path,
      query: {
        watch: true,
        allowWatchBookmarks: true,
        ...omitUndefined({ labelSelector: options.labelSelector }),
        resourceVersion: options.resourceVersion,
        timeoutSeconds: Math.max(1, Math.floor((options.watchTimeoutMs * 5) / 6000)),
      },
      signal: options.signal,
    },
    options.watchTimeoutMs,
  );
  return eventsOf<T>(stream);
}

async function* eventsOf<T>(stream: AsyncIterable<Buffer>): AsyncGenerator<WatchEvent<T>> {
  const splitter = new LineSplitter();
  // Text after the last newline is an incomplete event.
  for await (const chunk of stream) for (const line of splitter.push(chunk)) yield parse<T>(line);
}

function parse<T>(line: string): WatchEvent<T> {
  const event = JSON.parse(line) as
    WatchEvent<T> | { readonly type: 'ERROR'; readonly object: { readonly code?: number } };
  if (event.type !== 'ERROR') return event;
  throw new ApiError(event.object.code ?? 500, JSON.stringify(event.object), {});
}
