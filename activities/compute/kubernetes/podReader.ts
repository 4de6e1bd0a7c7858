import type { V1Pod } from '@kubernetes/client-node';
import { LRUCache } from 'lru-cache';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { Logger } from '../../ports/logger.ts';
import type { PodListener } from '../../ports/compute.ts';
import type { ApiObjects } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { toComputeError } from './errors.ts';
import { PodCache } from './podCache.ts';
import { listPods } from './podList.ts';
import { toPodView } from './podView.ts';
import type { OwnedPodRef, PodView } from '../../../core/domain/pod.ts';
import { ComputeError } from '../../ports/computeError.ts';
import { isOfWorkflow } from './ownership.ts';

/** Options of {@link PodReader}. */
export interface LivePodsOptions {
  /** Value of the installation label. */
  readonly installation: string;
  readonly labelSelector: string;
  readonly logger: Logger;
  /** See {@link PodCache}. */
  readonly watchTimeoutMs?: number | undefined;
  readonly minBackoffMs?: number | undefined;
}

/** Number of deleted pods to remember. A forgotten one costs one request. */
const MAX_GONE = 20_000;

/**
 * Reads the current state of pods, from the cache of the watch if it is current, otherwise from the
 * API server.
 */
export class PodReader {
  readonly #api: ApiServer;
  readonly #objects: ApiObjects;
  readonly #options: LivePodsOptions;
  /** UIDs of pods seen to be deleted. */
  readonly #gone = new LRUCache<string, true>({ max: MAX_GONE });
  /** Workflow IDs of pods of this installation, by UID. */
  readonly #owners = new LRUCache<string, string>({ max: MAX_GONE });
  /** One for each namespace, while there is a watch. */
  #caches: ReadonlyMap<string, PodCache> | undefined;

  constructor(api: ApiServer, objects: ApiObjects, options: LivePodsOptions) {
    this.#api = api;
    this.#objects = objects;
    this.#options = options;
  }

  /** Whether the watch is open and reports every change. */
  get watched(): boolean {
    return this.#caches !== undefined && [...this.#caches.values()].every((each) => each.synced());
  }

  /** Returns the cached state of a pod. @param namespace - default: that of requests without one */
  #cached(name: string, namespace: string | undefined): PodView | undefined {
    const [home = ''] = this.#objects.namespaces;
    return this.#caches?.get(namespace ?? home)?.get(name);
  }

  /** Returns the state of a pod that this process has just created. */
  created(pod: V1Pod): PodView {
    return this.#view(pod);
  }

  /**
   * Returns the state of a pod. A pod that is not in the cache may be new, or the watch does not
   * match it, so it is read from the API server.
   * @param wanted - with `live`, the API server is always used
   * @throws ComputeError `foreign` if the pod with this UID belongs to another runner
   */
  async observe(wanted: PodQuery & { readonly live?: boolean }): Promise<PodView | undefined> {
    const { name, uid, namespace, workflowId, live = false } = wanted;
    if (uid !== undefined && this.#gone.has(uid)) return undefined;
    // A silent watch may be half-open for as long as its timeout.
    const known = !live && this.watched ? this.#cached(name, namespace) : undefined;
    const isIt =
      known !== undefined &&
      (uid === undefined || known.uid === uid) &&
      (workflowId === undefined || known.workflowId === workflowId);
    return isIt ? known : (await this.#read(wanted))?.view;
  }

  /** Returns the state that the watch saw last, even if the watch is not open now. */
  lastSeen({ name, uid, namespace, workflowId }: OwnedPodRef): PodView | 'deleted' | undefined {
    const known = this.#cached(name, namespace);
    if (known?.uid === uid) return known.workflowId === workflowId ? known : undefined;
    return this.#gone.has(uid) ? 'deleted' : undefined;
  }

  /**
   * Returns a pod with its resource version from a live read.
   * @throws ComputeError `foreign` if it belongs to another runner
   */
  async read(pod: OwnedPodRef): Promise<LivePod | undefined> {
    return await this.#read(pod);
  }

  /**
   * Returns whether the pod exists. Must be called before every operation on the pod. Mostly the
   * pod was seen before, and the call sends no request.
   * @throws ComputeError `foreign` if the pod belongs to another installation or runner; `invalid`
   * if there is no UID
   */
  async isOwn(pod: OwnedPodRef): Promise<boolean> {
    if (pod.uid === '' || typeof pod.uid !== 'string')
      throw new ComputeError('invalid', `pod ${pod.name}: the UID is missing`);
    if (this.#gone.has(pod.uid)) return false;
    return this.#owners.get(pod.uid) === pod.workflowId || (await this.#read(pod)) !== undefined;
  }

  async #read({ name, uid, namespace, workflowId }: PodQuery): Promise<LivePod | undefined> {
    const pod = await this.#objects.get<V1Pod>('pods', namespace, name);
    if (pod === undefined || (uid !== undefined && pod.metadata?.uid !== uid)) return undefined;
    const { installation } = this.#options;
    const marks = pod.metadata ?? {};
    if (workflowId === undefined || isOfWorkflow(marks, installation, workflowId))
      return { view: this.#view(pod), resourceVersion: marks.resourceVersion };
    if (uid === undefined) return undefined;
    throw new ComputeError(
      'foreign',
      `pod ${marks.namespace}/${name} is not a pod of ${workflowId} and the installation ${installation}, by its label and annotations; it is kept`,
    );
  }

  /**
   * Returns all pods of the installation.
   * @param options - `cached`: from the cache of the watch
   * @throws ComputeError `unavailable` if the cache is not current
   */
  async list({ cached = false }: { readonly cached?: boolean } = {}): Promise<PodView[]> {
    if (cached) {
      if (!this.watched)
        throw new ComputeError('unavailable', 'failed to list pods: the watch is not synced');
      return [...(this.#caches?.values() ?? [])].flatMap((each) => each.all());
    }
    const views: PodView[] = [];
    try {
      for (const path of this.#objects.allOf('pods'))
        await listPods(this.#api, {
          path,
          labelSelector: this.#options.labelSelector,
          onPod: (pod) => views.push(this.#view(pod)),
        });
    } catch (error) {
      throw toComputeError(error, 'list pods');
    }
    return views;
  }

  /**
   * Starts the single watch of this process, a stream for each namespace.
   * @param onPodSeen - called for each pod that was listed or watched
   * @throws Error if the watch is already running
   */
  watch(
    listener: PodListener,
    onPodSeen: (pod: V1Pod) => void,
  ): { stop(): Promise<void>; synced(): boolean } {
    if (this.#caches) throw new Error('The pods are watched already: one watch per process');
    const { namespaces } = this.#objects;
    const listed = new Map<string, ReadonlyMap<string, PodView>>();
    const relisted = (namespace: string, pods: ReadonlyMap<string, PodView>): void => {
      listed.set(namespace, pods);
      // A pod of a namespace that was not listed yet is not missing.
      if (listed.size === namespaces.length)
        listener.relisted(new Map([...listed.values()].flatMap((each) => [...each])));
    };
    const caches = new Map(
      namespaces.map((namespace) => [
        namespace,
        this.#watch(namespace, onPodSeen, {
          changed: (pod, previous) => {
            if (pod.deleted) this.#gone.set(pod.uid, true);
            else this.#owners.set(pod.uid, pod.workflowId);
            listener.changed(pod, previous);
          },
          relisted: (pods) => relisted(namespace, pods),
        }),
      ]),
    );
    this.#caches = caches;
    return {
      synced: () => [...caches.values()].every((cache) => cache.synced()),
      stop: async () => {
        if (this.#caches === caches) this.#caches = undefined;
        await Promise.all([...caches.values()].map(async (cache) => await cache.stop()));
      },
    };
  }

  #watch(namespace: string, onPodSeen: (pod: V1Pod) => void, listener: PodListener): PodCache {
    const { labelSelector, logger, watchTimeoutMs, minBackoffMs } = this.#options;
    return new PodCache(this.#api, {
      path: this.#objects.pathOf('pods', namespace),
      labelSelector,
      onPodSeen,
      listener,
      isDeleted: async ({ name, uid }) =>
        (await this.#objects.get<V1Pod>('pods', namespace, name))?.metadata?.uid !== uid,
      onError: (error, what) =>
        logger.warn({ err: toComputeError(error, `watch pods in ${namespace}`) }, what),
      ...omitUndefined({ watchTimeoutMs, minBackoffMs }),
    });
  }

  #view(pod: V1Pod): PodView {
    const view = toPodView(
      pod,
      new Date().toISOString(),
      this.#cached(pod.metadata?.name ?? '', pod.metadata?.namespace),
    );
    this.#owners.set(view.uid, view.workflowId);
    return view;
  }
}

/** Selects a pod. Without `uid`, it is the pod that has the name now. */
type PodQuery = Omit<OwnedPodRef, 'uid' | 'workflowId'> &
  Partial<Record<'uid' | 'workflowId', string | undefined>>;

interface LivePod {
  readonly view: PodView;
  readonly resourceVersion: string | undefined;
}
