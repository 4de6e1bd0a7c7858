import type { V1Pod } from '@kubernetes/client-node';
import { LRUCache } from 'lru-cache';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { Logger, PodListener } from '../../ports.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { toComputeError } from './errors.ts';
import { PodCache } from './podCache.ts';
import { listPods } from './podList.ts';
import { toPodView } from './podView.ts';
import type { PodRef, PodView } from '../../../core/domain/pod.ts';

export interface LivePodsOptions {
  readonly labelSelector: string;
  readonly logger: Logger;
  /** See {@link PodCache}. */
  readonly watchTimeoutMs?: number | undefined;
  readonly minBackoffMs?: number | undefined;
}

/** Pods whose end is remembered; forgetting one costs one read of it and nothing else. */
const MAX_GONE = 20_000;

/** Pods as they are now: from the watch's cache where that is as live as a read, else from the API server. */
export class PodReader {
  readonly #api: ApiServer;
  readonly #objects: ApiObjects;
  readonly #options: LivePodsOptions;
  /** UIDs of pods that were seen to go. */
  readonly #gone = new LRUCache<string, true>({ max: MAX_GONE });
  #cache: PodCache | undefined;

  constructor(api: ApiServer, objects: ApiObjects, options: LivePodsOptions) {
    this.#api = api;
    this.#objects = objects;
    this.#options = options;
  }

  /** The watch tells of every change. */
  get watched(): boolean {
    return this.#cache?.synced() === true;
  }

  /** A pod as this process has just created it. */
  created(pod: V1Pod): PodView {
    return this.#view(pod);
  }

  /** A pod that the watch does not have may be new, or out of its sight: only the API server can tell. @throws ComputeError */
  async observe({
    name,
    uid,
    namespace,
  }: Omit<PodRef, 'uid'> & Partial<PodRef>): Promise<PodView | undefined> {
    if (uid !== undefined && this.#gone.has(uid)) return undefined;
    const known = this.#cache?.synced() === true ? this.#cache.get(name) : undefined;
    if (known && (uid === undefined || known.uid === uid)) return known;
    return await this.#read({ name, uid, namespace });
  }

  /** What the watch told last, whether it tells more now or not. */
  lastSeen({ name, uid }: PodRef): PodView | 'deleted' | undefined {
    if (this.#gone.has(uid)) return 'deleted';
    const known = this.#cache?.get(name);
    return known?.uid === uid ? known : undefined;
  }

  /** By the API server's own word, with the version that it speaks of. @throws ComputeError */
  async read({
    name,
    uid,
    namespace,
  }: PodRef): Promise<
    { readonly view: PodView; readonly resourceVersion: string | undefined } | undefined
  > {
    const pod = await this.#objects.get<V1Pod>('pods', namespace, name);
    return pod?.metadata?.uid === uid && pod !== undefined
      ? { view: this.#view(pod), resourceVersion: pod.metadata?.resourceVersion }
      : undefined;
  }

  async #read({
    name,
    uid,
    namespace,
  }: {
    name: string;
    uid: string | undefined;
    namespace: string | undefined;
  }): Promise<PodView | undefined> {
    const pod = await this.#objects.get<V1Pod>('pods', namespace, name);
    return pod && (uid === undefined || pod.metadata?.uid === uid) ? this.#view(pod) : undefined;
  }

  /** @throws ComputeError */
  async list(): Promise<PodView[]> {
    const views: PodView[] = [];
    try {
      await listPods(this.#api, {
        path: this.#objects.allOf('pods'),
        labelSelector: this.#options.labelSelector,
        onPod: (pod) => views.push(this.#view(pod)),
      });
    } catch (error) {
      throw toComputeError(error, 'list pods');
    }
    return views;
  }

  /** @param onPodSeen - told of each pod as it was listed or watched @throws Error when they are watched already */
  watch(
    listener: PodListener,
    onPodSeen: (pod: V1Pod) => void,
  ): { stop(): Promise<void>; synced(): boolean } {
    if (this.#cache) throw new Error('The pods are watched already: one watch per process');
    const { labelSelector, logger, watchTimeoutMs, minBackoffMs } = this.#options;
    const cache = new PodCache(this.#api, {
      path: this.#objects.allOf('pods'),
      labelSelector,
      onPodSeen,
      listener: {
        changed: (pod, previous) => {
          if (pod.deleted) this.#gone.set(pod.uid, true);
          listener.changed(pod, previous);
        },
        relisted: (pods) => listener.relisted(pods),
      },
      isDeleted: async ({ name, uid, namespace }) =>
        (await this.#read({ name, uid, namespace })) === undefined,
      onError: (error, what) => logger.warn({ err: toComputeError(error, 'watch pods') }, what),
      ...omitUndefined({ watchTimeoutMs, minBackoffMs }),
    });
    this.#cache = cache;
    return {
      synced: () => cache.synced(),
      stop: async () => {
        if (this.#cache === cache) this.#cache = undefined;
        await cache.stop();
      },
    };
  }

  #view(pod: V1Pod): PodView {
    return toPodView(pod, new Date().toISOString(), this.#cache?.get(pod.metadata?.name ?? ''));
  }
}
