import type { V1Pod } from '@kubernetes/client-node';
import { LRUCache } from 'lru-cache';
import { defined } from '../../../core/defined.ts';
import type { Logger, PodListener } from '../../ports.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { toComputeError } from './errors.ts';
import { PodCache } from './podCache.ts';
import { listPods } from './podList.ts';
import { viewOfPod } from './viewOfPod.ts';
import type { PodRef, PodView } from '../../../core/domain/pod.ts';

export interface LivePodsOptions {
  readonly labelSelector: string;
  readonly logger: Logger;
  /** See {@link PodCache}. */
  readonly quietMs?: number | undefined;
  readonly minBackoffMs?: number | undefined;
}

/** Pods made by this process whose creation is remembered; forgetting one costs one read of it and nothing else. */
const MOST_CREATED = 20_000;

/** Pods as they are now: from the watch's cache where that is as live as a read, else from the API server. */
export class LivePods {
  readonly #api: ApiServer;
  readonly #objects: ApiObjects;
  readonly #options: LivePodsOptions;
  /** When, in the cluster's own count, this process created which pod: resource versions by UID. */
  readonly #created = new LRUCache<string, string>({ max: MOST_CREATED });
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
    this.#created.set(pod.metadata?.uid ?? '', pod.metadata?.resourceVersion ?? '');
    return this.#view(pod);
  }

  /** @throws ComputeError */
  async observe({ name, uid, namespace }: Omit<PodRef, 'uid'> & Partial<PodRef>): Promise<PodView | undefined> {
    if (this.#cache?.synced()) {
      const known = this.#cache.get(name);
      if (known && (uid === undefined || known.uid === uid)) return known;
      const createdAt = uid === undefined ? undefined : this.#created.get(uid);
      // The cache has seen the time of its creation, and does not have it: it is gone.
      if (createdAt !== undefined && this.#cache.isAtOrPast(createdAt)) return undefined;
    }
    const pod = await this.#objects.get<V1Pod>('pods', namespace, name);
    return pod && (uid === undefined || pod.metadata?.uid === uid) ? this.#view(pod) : undefined;
  }

  /** @throws ComputeError */
  async list(): Promise<PodView[]> {
    const views: PodView[] = [];
    try {
      await listPods(this.#api, { path: this.#objects.allPods, labelSelector: this.#options.labelSelector, onPod: (pod) => views.push(this.#view(pod)) });
    } catch (error) {
      throw toComputeError(error, 'list pods');
    }
    return views;
  }

  /** @throws Error when they are watched already */
  watch(listener: PodListener): { stop(): Promise<void>; synced(): boolean } {
    if (this.#cache) throw new Error('The pods are watched already: one watch per process');
    const { labelSelector, logger, quietMs, minBackoffMs } = this.#options;
    const cache = new PodCache(this.#api, {
      path: this.#objects.allPods,
      labelSelector,
      listener,
      onError: (error, what) => logger.warn({ err: toComputeError(error, 'watch pods') }, what),
      ...defined({ quietMs, minBackoffMs }),
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
    return viewOfPod(pod, new Date().toISOString(), this.#cache?.get(pod.metadata?.name ?? ''));
  }
}
