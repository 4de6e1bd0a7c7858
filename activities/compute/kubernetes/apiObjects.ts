import type {
  V1ObjectMeta,
  V1PersistentVolumeClaim,
  V1Pod,
  V1Secret,
} from '@kubernetes/client-node';
import { LRUCache } from 'lru-cache';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { ComputeError } from '../../ports/computeError.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isNotFound, isUidMismatch, toComputeError } from './errors.ts';
import { WORKFLOW_ID_ANNOTATION } from './metadata.ts';
import { isOfRunner } from './ownership.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';

/** Kubernetes resources that Holdfast reads or writes, in the plural form of their API path. */
export type Resource = 'pods' | 'secrets' | 'persistentvolumeclaims' | 'configmaps' | 'jobs';

/** Returns the API path prefix of a resource. */
const rootOf = (resource: Resource): string => (resource === 'jobs' ? '/apis/batch/v1' : '/api/v1');

/** Namespaces of a worker's runners. */
export interface RunnerNamespaces {
  /** Namespace of requests that name none. */
  readonly default: string;
  /** Other namespaces that requests may name. */
  readonly others: readonly string[];
  /** Namespaces in which the hooks of runners create pods for their jobs. */
  readonly jobPods: readonly string[];
}

/**
 * Maximum number of created objects whose UIDs are remembered. A UID that was dropped costs one
 * read.
 */
const MAX_CREATED = 20_000;

/** Reads, creates and deletes the objects of runners. Every operation is idempotent. */
export class ApiObjects {
  readonly #api: ApiServer;
  readonly #namespaces: RunnerNamespaces;
  readonly #installation: string;
  /** UIDs of objects that this process has created, by path. */
  readonly #created = new LRUCache<string, string>({ max: MAX_CREATED });

  /** @param installation - value of the label on the objects of this installation */
  constructor(api: ApiServer, namespaces: RunnerNamespaces, installation: string) {
    this.#api = api;
    this.#namespaces = namespaces;
    this.#installation = installation;
  }

  /** Returns the path of all objects of this kind in each namespace, that of the default first. */
  allOf(resource: Resource): string[] {
    return this.namespaces.map((namespace) => this.pathOf(resource, namespace));
  }

  /** Returns the same for the namespaces in which jobs have pods of their own. */
  allOfJobs(resource: Resource): string[] {
    return this.#namespaces.jobPods.map((namespace) => this.pathOf(resource, namespace));
  }

  /** Namespaces of runners, that of requests without a namespace first. */
  get namespaces(): readonly string[] {
    return [this.#namespaces.default, ...this.#namespaces.others];
  }

  /** Whether the hooks of runners may create pods for their jobs in this namespace. */
  hasJobPods(namespace = this.#namespaces.default): boolean {
    return this.#namespaces.jobPods.includes(namespace);
  }

  /**
   * Returns the path of an object, or of its collection.
   * @param namespace - default: the worker's own
   * @throws ComputeError `invalid` for a namespace that this worker does not use
   */
  pathOf(resource: Resource, namespace: string | undefined, name?: string): string {
    const collection = `${rootOf(resource)}/namespaces/${encodeURIComponent(this.#namespaceOf(namespace))}/${resource}`;
    return name === undefined ? collection : `${collection}/${encodeURIComponent(name)}`;
  }

  /**
   * Returns an object with a live read.
   * @returns `undefined` if the API server itself reports that it does not exist
   * @throws ComputeError
   */
  async get<T>(
    resource: Resource,
    namespace: string | undefined,
    name: string,
    {
      metadataOnly = false,
      signal,
    }: { readonly metadataOnly?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    try {
      return await this.#api.call<T>({
        verb: 'get',
        resource,
        path: this.pathOf(resource, namespace, name),
        metadataOnly,
        ...omitUndefined({ signal }),
      });
    } catch (error) {
      if (isNotFound(error, name)) return undefined;
      throw toComputeError(error, `get ${this.#describe(resource, namespace, name)}`);
    }
  }

  /**
   * Creates the object, or returns the one that an earlier attempt created. If the existing object
   * is deleted between the failed creation and the read, it is created after all.
   * @throws ComputeError `invalid` also if the name is used by an object of another owner
   */
  async createOrGet<T extends V1Pod | V1Secret | V1PersistentVolumeClaim>(
    resource: Resource,
    namespace: string | undefined,
    object: T,
    identity: RunnerIdentity,
  ): Promise<T> {
    const name = object.metadata?.name ?? '';
    const what = this.#describe(resource, namespace, name);
    for (let tries = 0; ; tries++) {
      try {
        // Strict: an unknown field of a pod template is an error and is not dropped.
        const created = await this.#api.call<T>({
          verb: 'create',
          resource,
          path: this.pathOf(resource, namespace),
          query: { fieldValidation: 'Strict' },
          body: object,
        });
        const { uid } = created.metadata ?? {};
        if (uid !== undefined) this.#created.set(this.pathOf(resource, namespace, name), uid);
        return created;
      } catch (error) {
        const failure = apiFailure(error);
        if (failure?.status !== 409 || failure.reason !== 'AlreadyExists' || tries === 2)
          throw toComputeError(error, `create ${what}`);
      }
      const existing = await this.get<T>(resource, namespace, name);
      if (existing === undefined) continue;
      // An object without an owner is shared on purpose: a claim that passes from runner to runner.
      if (
        isOfRunner(existing.metadata ?? {}, this.#installation, identity) ||
        object.metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] === undefined
      )
        return existing;
      throw new ComputeError(
        'invalid',
        `${what} exists and belongs to another owner; delete it, or start the runner with another workflow ID`,
      );
    }
  }

  /**
   * Merges annotations into those of the object; `null` removes one. A missing object is ignored.
   * @throws ComputeError
   */
  async annotate(
    resource: Resource,
    namespace: string | undefined,
    name: string,
    annotations: Readonly<Record<string, string | null>>,
  ): Promise<void> {
    try {
      await this.#api.call({
        verb: 'patch',
        resource,
        path: this.pathOf(resource, namespace, name),
        body: { metadata: { annotations } },
      });
    } catch (error) {
      if (!isNotFound(error, name))
        throw toComputeError(error, `annotate ${this.#describe(resource, namespace, name)}`);
    }
  }

  /**
   * Deletes the object that was created for exactly this runner. A missing object, or one of
   * another runner, is ignored.
   * @throws ComputeError
   */
  async deleteOwn(
    resource: 'secrets' | 'persistentvolumeclaims',
    namespace: string | undefined,
    name: string,
    identity: RunnerIdentity,
  ): Promise<void> {
    const path = this.pathOf(resource, namespace, name);
    const created = this.#created.get(path);
    this.#created.delete(path);
    const uid = created ?? (await this.#ownUid(resource, namespace, name, identity));
    if (uid === undefined) return;
    try {
      await this.#api.call({
        verb: 'delete',
        resource,
        path,
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } },
      });
    } catch (error) {
      // Another process may have created it again.
      if (isUidMismatch(error)) {
        if (created !== undefined) await this.deleteOwn(resource, namespace, name, identity);
      } else if (!isNotFound(error, name))
        throw toComputeError(error, `delete ${this.#describe(resource, namespace, name)}`);
    }
  }

  async #ownUid(
    resource: Resource,
    namespace: string | undefined,
    name: string,
    identity: RunnerIdentity,
  ): Promise<string | undefined> {
    const found = await this.get<{ metadata?: V1ObjectMeta }>(resource, namespace, name, {
      metadataOnly: true,
    });
    return found !== undefined && isOfRunner(found.metadata ?? {}, this.#installation, identity)
      ? found.metadata?.uid
      : undefined;
  }

  #describe(resource: Resource, namespace: string | undefined, name: string): string {
    return `${resource} ${this.#namespaceOf(namespace)}/${name}`;
  }

  /** Returns why requests must not use this namespace. The list is empty if they may. */
  namespaceErrors(namespace: string | undefined): string[] {
    const { default: home, others } = this.#namespaces;
    if (namespace === undefined || namespace === home || others.includes(namespace)) return [];
    return [
      `namespace: must be one of ${[home, ...others].join(', ')}, got "${namespace}"; leave it out, or add it to HOLDFAST_NAMESPACES of the worker`,
    ];
  }

  #namespaceOf(namespace: string | undefined): string {
    const [fault] = this.namespaceErrors(namespace);
    if (fault !== undefined) throw new ComputeError('invalid', fault);
    return namespace ?? this.#namespaces.default;
  }
}
