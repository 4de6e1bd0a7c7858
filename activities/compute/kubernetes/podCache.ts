/**
 * Cache of all pods of an installation in one process: a list, and one shared watch that continues
 * it. It keeps views, not pods.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import type { PodListener } from '../../ports/compute.ts';
import { deletedPodView } from '../deletedPodView.ts';
import type { ApiServer } from './apiServer.ts';
import { isResourceVersionExpired } from './errors.ts';
import { listPods } from './podList.ts';
import { openWatch, type WatchEvent } from './openWatch.ts';
import { toPodView } from './podView.ts';
import type { PodRef, PodView } from '../../../core/domain/pod.ts';

/** Options of {@link PodCache}. */
export interface PodCacheOptions {
  readonly path: string;
  readonly labelSelector: string;
  readonly listener: PodListener;
  /** Called for each listed or watched pod, before the listener. */
  readonly onPodSeen?: (pod: V1Pod) => void;
  /** Returns whether a live request confirms that the pod with this UID is deleted. */
  readonly isDeleted: (pod: PodRef) => Promise<boolean>;
  /** Called when the watch is lost or a listener throws. */
  readonly onError: (error: unknown, what: string) => void;
  /** Maximum duration of one watch request (ms). @default 30000 */
  readonly watchTimeoutMs?: number;
  /**
   * Time to wait before the first reconnect (ms). It doubles up to 2 s.
   * @default 500
   */
  readonly minBackoffMs?: number;
}

/**
 * Maximum time to wait before a reconnect (ms). It is low, because all waits depend on the watch,
 * and it causes no more requests than the probes of a circuit breaker.
 */
const MAX_BACKOFF_MS = 2_000;
/**
 * Minimum duration of a watch (ms). A server or proxy that closes each watch immediately must not
 * cause a tight loop.
 */
const MIN_WATCH_MS = 1_000;

/**
 * Cache of pods that a list and a watch keep up to date. It starts immediately and reconnects until
 * it is stopped.
 */
export class PodCache {
  readonly #api: ApiServer;
  readonly #options: PodCacheOptions;
  readonly #watchTimeoutMs: number;
  readonly #end = new AbortController();
  readonly #done: Promise<void>;
  #pods = new Map<string, PodView>();
  /**
   * Resource version from which the next watch continues. `undefined` if the pods must be listed
   * first.
   */
  #resourceVersion: string | undefined;
  #connected = false;
  #failures = 0;

  /** Starts immediately and runs until {@link stop}. */
  constructor(api: ApiServer, options: PodCacheOptions) {
    this.#api = api;
    this.#options = options;
    this.#watchTimeoutMs = options.watchTimeoutMs ?? 30_000;
    this.#done = this.#run();
  }

  /**
   * Returns whether a list is complete and the watch that continues it is open. The cache is then
   * as current as a live read.
   */
  synced(): boolean {
    return this.#connected && this.#resourceVersion !== undefined;
  }

  /** Returns the cached state of the pod with this name. */
  get(name: string): PodView | undefined {
    return this.#pods.get(name);
  }

  /** Returns the cached state of all pods. */
  all(): PodView[] {
    return [...this.#pods.values()];
  }

  /** Ends the watch. Resolves when no listener runs any more. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      try {
        this.#resourceVersion ??= await this.#list();
        await this.#watch(this.#resourceVersion);
      } catch (error) {
        this.#connected = false;
        if (this.#end.signal.aborted) break;
        await this.#recover(error);
      }
    }
    this.#connected = false;
  }

  async #recover(error: unknown): Promise<void> {
    this.#failures += 1;
    // The resource version is older than the history of the server. Only a new list shows the
    // current pods.
    const expired = isResourceVersionExpired(error);
    if (expired) this.#resourceVersion = undefined;
    if (expired && this.#failures === 1) return;
    const isIdleTimeout =
      error instanceof Error && 'code' in error && error.code === 'UND_ERR_BODY_TIMEOUT';
    if (isIdleTimeout && this.#failures === 1) return;
    this.#options.onError(error, 'watch of pods lost');
    const ceiling = Math.min(
      MAX_BACKOFF_MS,
      (this.#options.minBackoffMs ?? 500) * 2 ** Math.min(this.#failures - 1, 10),
    );
    // Jitter: otherwise all workers reconnect at the same time after an outage.
    await delay(ceiling * (0.5 + Math.random() / 2), undefined, { signal: this.#end.signal }).catch(
      () => undefined,
    );
  }

  async #list(): Promise<string> {
    const listed = new Map<string, PodView>();
    const resourceVersion = await listPods(this.#api, {
      path: this.#options.path,
      labelSelector: this.#options.labelSelector,
      signal: this.#end.signal,
      onPod: (pod) => {
        const view = this.#view(pod);
        listed.set(view.name, view);
      },
    });
    const before = this.#pods;
    const deleted = await this.#deletedOf(
      [...before.values()].filter(({ name, uid }) => listed.get(name)?.uid !== uid),
    );
    this.#pods = listed;
    for (const last of deleted) this.#notify(deletedPodView(last), last);
    for (const view of listed.values()) {
      const previous = before.get(view.name);
      this.#notify(view, previous?.uid === view.uid ? previous : undefined);
    }
    this.#guard(() => this.#options.listener.relisted(listed));
    return resourceVersion;
  }

  async #watch(resourceVersion: string): Promise<void> {
    const startedAt = performance.now();
    const events = await openWatch<V1Pod>(this.#api, {
      resource: 'pods',
      path: this.#options.path,
      labelSelector: this.#options.labelSelector,
      resourceVersion,
      watchTimeoutMs: this.#watchTimeoutMs,
      signal: this.#end.signal,
    });
    this.#connected = true;
    for await (const event of events) await this.#apply(event);
    if (performance.now() - startedAt < Math.min(MIN_WATCH_MS, this.#watchTimeoutMs / 2))
      throw new Error('the server ended the watch immediately');
    this.#failures = 0;
    // The server ended the watch as requested. This is not a loss: the next watch continues from
    // the same resource version within milliseconds, and until the server rejects it the cache is
    // as current as before.
  }

  async #apply(event: WatchEvent<V1Pod>): Promise<void> {
    this.#failures = 0;
    if (event.type !== 'BOOKMARK') {
      const view = this.#view(event.object);
      const known = this.#pods.get(view.name);
      const previous = known?.uid === view.uid ? known : undefined;
      if (event.type === 'DELETED') {
        // A pod whose labels were removed looks the same in the watch, so a pod that may still be
        // running is confirmed with a live read.
        const runs = view.startedAt !== undefined && !view.ended;
        const isDeleted = !runs || (await this.#deletedOf([view])).length > 0;
        if (previous || !known) this.#pods.delete(view.name);
        if (isDeleted) this.#notify(deletedPodView(view), previous);
      } else {
        this.#pods.set(view.name, view);
        if (known && !previous) this.#notify(deletedPodView(known), known);
        this.#notify(view, previous);
      }
    }
    this.#resourceVersion = event.object.metadata?.resourceVersion ?? this.#resourceVersion;
  }

  /**
   * Returns the deleted pods among those that the watch no longer shows. For the others, waits find
   * the state of the pod with their own live reads.
   */
  async #deletedOf(pods: readonly PodView[]): Promise<PodView[]> {
    const deleted = await Promise.all(pods.map(async (pod) => await this.#options.isDeleted(pod)));
    for (const [index, { name }] of pods.entries()) {
      if (deleted[index] !== true)
        this.#options.onError(
          new Error(`pod ${name} exists but is not listed; check whether its labels were changed`),
          'an existing pod is missing from the watch',
        );
    }
    return pods.filter((_, index) => deleted[index]);
  }

  #view(pod: V1Pod): PodView {
    this.#guard(() => this.#options.onPodSeen?.(pod));
    return toPodView(pod, new Date().toISOString(), this.#pods.get(pod.metadata?.name ?? ''));
  }

  #notify(view: PodView, previous: PodView | undefined): void {
    this.#guard(() => this.#options.listener.changed(view, previous));
  }

  /** Calls a listener. A defect in a listener must not end the watch of all runners. */
  #guard(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#options.onError(error, 'listener of pods failed');
    }
  }
}
