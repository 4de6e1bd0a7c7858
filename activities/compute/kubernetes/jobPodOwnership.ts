/**
 * Job pods: the objects that a runner's container hooks create for a job (`containerMode:
 * kubernetes` of the chart). They are a pod for the job, a pod for each step that is a container (a
 * batch Job up to version 0.7 of the hooks), and Secrets for both. The hooks delete them after the
 * job, but not if the runner is killed. So each gets an owner reference to the runner's pod, and
 * the garbage collector of the cluster deletes it with that pod.
 * https://github.com/actions/runner-container-hooks/blob/main/packages/k8s/src/k8s/index.ts
 *
 * The sweep finds the objects that no worker has seen in time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { V1ObjectMeta, V1Pod, V1PodSpec } from '@kubernetes/client-node';
import { LRUCache } from 'lru-cache';
import { MANAGED_BY_LABEL } from '../../../core/domain/podTemplate.ts';
import type { Logger } from '../../ports/logger.ts';
import type { ApiObjects, Resource } from './apiObjects.ts';
import type { ApiServer } from './apiServer.ts';
import { isNotFound, isUidMismatch, toComputeError } from './errors.ts';
import { INSTALLATION_LABEL, RUNNER_POD_LABEL, isOnHold } from './metadata.ts';
import { listObjects } from './objectList.ts';
import { openWatch } from './openWatch.ts';

/** Job pods, and Jobs of container steps, of runners whose pods this process has seen. */
export interface JobPodCount {
  /** Number of objects that are deleted with their runner's pod. */
  readonly owned: number;
  /**
   * Number of objects without an owner: a person holds them, or the update failed. Failed updates
   * are logged and retried.
   */
  readonly unowned: number;
}

/** Options of {@link JobPodOwnership}. */
export interface JobPodsOptions {
  readonly installation: string;
  readonly logger: Logger;
  /**
   * Time between two complete lists (ms).
   * @default 30000
   */
  readonly watchTimeoutMs?: number | undefined;
  /** Called whenever an object is created, changed or deleted. */
  readonly onCount?: ((count: JobPodCount) => void) | undefined;
}

/** Fields of a pod or a Job that are read here. */
interface HookObject {
  readonly metadata?: V1ObjectMeta;
  readonly spec?: V1PodSpec & { readonly template?: { readonly spec?: V1PodSpec } };
}

type Kind = (typeof KINDS)[number];
/** State of one object. A `stranger` belongs to no runner of this installation. */
type OwnershipState = 'owned' | 'unowned' | 'stranger';

const KINDS = [
  { resource: 'pods', listKind: 'PodList' },
  { resource: 'jobs', listKind: 'JobList' },
] as const satisfies readonly { resource: Resource; listKind: string }[];

/**
 * Maximum number of runner pods remembered. The sweep finds the objects of a deleted pod that was
 * dropped.
 */
const MAX_RUNNERS = 20_000;
const PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;

/**
 * Sets the runner's pod as the owner of the pods, Jobs and Secrets that its container hooks create
 * for a job. Pass it every runner pod, and stop it at the end.
 */
export class JobPodOwnership {
  readonly #api: ApiServer;
  readonly #objects: ApiObjects;
  readonly #options: JobPodsOptions;
  readonly #end = new AbortController();
  /**
   * UIDs of runner pods by namespace and name. Deleted pods remain: the garbage collector then
   * deletes an object of theirs immediately.
   */
  readonly #runners = new LRUCache<string, string>({ max: MAX_RUNNERS });
  /** States of the objects of each list, by UID. */
  readonly #standings = new Map<string, Map<string, OwnershipState>>();
  #following: Promise<unknown> | undefined;

  constructor(api: ApiServer, objects: ApiObjects, options: JobPodsOptions) {
    this.#api = api;
    this.#objects = objects;
    this.#options = options;
  }

  /**
   * Adds a runner pod. The first one whose hooks create job pods starts the watch, which runs until
   * {@link stop}.
   */
  addRunner(pod: V1Pod): void {
    const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
    if (!makesJobPods(pod.spec) || this.#end.signal.aborted) return;
    this.#runners.set(`${namespace}/${name}`, uid);
    this.#following ??= Promise.all(
      KINDS.flatMap((kind) =>
        this.#objects.allOfJobs(kind.resource).map(async (path) => await this.#follow(kind, path)),
      ),
    );
  }

  /** Ends the watches and the requests in progress. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#following;
  }

  /** Lists the objects of a path and watches them until the next list. Each list retries failed updates. */
  async #follow({ resource, listKind }: Kind, path: string): Promise<void> {
    const { signal } = this.#end;
    const { logger, watchTimeoutMs = 30_000 } = this.#options;
    const all = { resource, path, labelSelector: RUNNER_POD_LABEL, signal };
    const standings = new Map<string, OwnershipState>();
    this.#standings.set(path, standings);
    let pauseMs = PAUSE_MS;
    while (!signal.aborted) {
      try {
        const listed: HookObject[] = [];
        const resourceVersion = await listObjects<HookObject>(this.#api, listKind, {
          ...all,
          onObject: (object) => listed.push(object),
        });
        await this.#listed(resource, listed, standings);
        const events = await openWatch<HookObject>(this.#api, {
          ...all,
          resourceVersion,
          watchTimeoutMs,
        });
        pauseMs = PAUSE_MS;
        for await (const { type, object } of events) {
          const { uid = '' } = object.metadata ?? {};
          if (type === 'DELETED') standings.delete(uid);
          else if (type !== 'BOOKMARK' && !standings.has(uid))
            await this.#take(resource, object, standings);
          this.#tellCount();
        }
      } catch (error) {
        if (signal.aborted) return;
        logger.warn(
          { err: toComputeError(error, `watch ${resource} of jobs`) },
          `job pods: ${resource} cannot be watched; trying again`,
        );
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
      }
      // A server or proxy that ends each watch immediately must not cause a tight loop.
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #listed(
    resource: Kind['resource'],
    listed: readonly HookObject[],
    standings: Map<string, OwnershipState>,
  ): Promise<void> {
    const there = new Set(listed.map(({ metadata }) => metadata?.uid));
    for (const uid of standings.keys()) if (!there.has(uid)) standings.delete(uid);
    for (const object of listed) await this.#take(resource, object, standings);
    this.#tellCount();
  }

  /**
   * Sets the owner of an object. Objects that have an owner, or that belong to no runner of this
   * installation, are final. The others are retried with each list.
   */
  async #take(
    resource: Kind['resource'],
    object: HookObject,
    standings: Map<string, OwnershipState>,
  ): Promise<void> {
    const { uid = '', namespace, name } = object.metadata ?? {};
    if (standings.get(uid) === 'owned' || standings.get(uid) === 'stranger') return;
    try {
      standings.set(uid, await this.#adopt(resource, object));
    } catch (error) {
      if (this.#end.signal.aborted) throw error;
      standings.set(uid, 'unowned');
      this.#options.logger.warn(
        { err: toComputeError(error, `give ${resource} ${namespace}/${name} an owner`) },
        'job pods: one could not be given its runner for an owner; trying again',
      );
    }
  }

  async #adopt(
    resource: Kind['resource'],
    { metadata = {}, spec }: HookObject,
  ): Promise<OwnershipState> {
    const { namespace = '', labels = {}, annotations = {}, ownerReferences = [] } = metadata;
    const runner = labels[RUNNER_POD_LABEL] ?? '';
    const uid = await this.#runnerUid(namespace, runner);
    if (uid === undefined) return 'stranger';
    // Another worker, or someone else, has set an owner.
    if (ownerReferences.length > 0) return 'owned';
    if (isOnHold(annotations)) return 'unowned';
    const owner = { apiVersion: 'v1', kind: 'Pod', name: runner, uid };
    // The Secrets come before the object that refers to them: if one fails, all are retried.
    for (const secret of secretsIn(spec?.template?.spec ?? spec))
      await this.#adoptSecret(namespace, secret, owner);
    await this.#setOwner(resource, metadata, owner);
    return 'owned';
  }

  /**
   * Sets the owner of a Secret. A job may refer to any Secret, so only those are changed that the
   * hooks have created for this runner.
   */
  async #adoptSecret(namespace: string, name: string, owner: { name: string }): Promise<void> {
    const secret = await this.#objects.get<{ metadata?: V1ObjectMeta }>(
      'secrets',
      namespace,
      name,
      { metadataOnly: true, signal: this.#end.signal },
    );
    const { labels = {}, annotations = {}, ownerReferences = [] } = secret?.metadata ?? {};
    if (
      secret?.metadata === undefined ||
      labels[RUNNER_POD_LABEL] !== owner.name ||
      ownerReferences.length > 0 ||
      isOnHold(annotations)
    )
      return;
    await this.#setOwner('secrets', secret.metadata, owner);
  }

  async #setOwner(
    resource: Resource,
    { namespace, name = '', uid }: V1ObjectMeta,
    owner: object,
  ): Promise<void> {
    const body = { metadata: { uid, ownerReferences: [owner] } };
    try {
      await this.#api.call({
        verb: 'patch',
        resource,
        path: this.#objects.pathOf(resource, namespace, name),
        body,
        metadataOnly: true,
        signal: this.#end.signal,
      });
    } catch (error) {
      if (!isNotFound(error, name) && !isUidMismatch(error)) throw error;
    }
  }

  /**
   * Returns the UID of the runner pod of this installation with this name. It is a live read: the
   * pod may have been deleted and created again under its name since it was seen. The garbage
   * collector would delete an object whose owner does not exist any more during its job.
   */
  async #runnerUid(namespace: string, name: string): Promise<string | undefined> {
    const pod = await this.#objects.get<{ metadata?: V1ObjectMeta }>('pods', namespace, name, {
      metadataOnly: true,
      signal: this.#end.signal,
    });
    if (pod === undefined) return this.#runners.get(`${namespace}/${name}`);
    const { labels = {}, uid } = pod.metadata ?? {};
    return labels[MANAGED_BY_LABEL] === 'holdfast' &&
      labels[INSTALLATION_LABEL] === this.#options.installation
      ? uid
      : undefined;
  }

  #tellCount(): void {
    const standings = [...this.#standings.values()].flatMap((each) => [...each.values()]);
    const count = (of: OwnershipState): number => standings.filter((each) => each === of).length;
    this.#options.onCount?.({ owned: count('owned'), unowned: count('unowned') });
  }
}

/**
 * Returns whether the container hooks are active. They do nothing in a pod without this variable
 * for its name.
 */
export function makesJobPods(spec: V1PodSpec | undefined): boolean {
  return (
    spec?.containers.some(({ env = [] }) =>
      env.some(({ name }) => name === 'ACTIONS_RUNNER_POD_NAME'),
    ) === true
  );
}

/** Returns the Secrets for images, and those that containers have in their environment. */
function secretsIn(spec: V1PodSpec | undefined): Set<string> {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const names = [
    ...(spec?.imagePullSecrets ?? []),
    ...containers.flatMap(({ envFrom = [] }) => envFrom.map(({ secretRef }) => secretRef)),
  ].map((secret) => secret?.name);
  return new Set(names.filter((name) => name !== undefined));
}
