import type {
  V1ObjectMeta,
  V1PersistentVolumeClaim,
  V1Pod,
  V1Secret,
} from '@kubernetes/client-node';
import { LRUCache } from 'lru-cache';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { ComputeError } from '../../ports.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isNotFound, isUidMismatch, toComputeError } from './errors.ts';
import { WORKFLOW_ID_ANNOTATION } from './metadata.ts';
import { isOfRunner } from './ownership.ts';
import { matchesAny } from './podPolicy/patterns.ts';
import type { RunnerIdentity } from '../../../core/domain/pod.ts';

/** Kubernetes resources that Holdfast reads or writes, in the plural form of their API path. */
export type Resource = 'pods' | 'secrets' | 'persistentvolumeclaims' | 'configmaps' | 'jobs';

/** Returns the API path prefix of a resource. */
const rootOf = (resource: Resource): string => (resource === 'jobs' ? '/apis/batch/v1' : '/api/v1');

/** Namespaces of a worker's runners. */
export interface RunnerNamespaces {
  /** Namespace of requests that name none. */
  readonly default: string;
  /** Whether requests may name other namespaces. */
  readonly all: boolean;
  /** Names of the other namespaces; `*` matches any text. */
  readonly allowed: readonly string[];
}

/** UIDs of objects that this process has made; forgetting one costs one read and nothing else. */
const MAX_CREATED = 20_000;

/** The objects of runners, read, made and deleted such that every step can be repeated. */
export class ApiObjects {
  readonly #api: ApiServer;
  readonly #namespaces: RunnerNamespaces;
  readonly #installation: string;
  /** By path. */
  readonly #created = new LRUCache<string, string>({ max: MAX_CREATED });

  /** @param installation - value of the label of what is this installation's */
  constructor(api: ApiServer, namespaces: RunnerNamespaces, installation: string) {
    this.#api = api;
    this.#namespaces = namespaces;
    this.#installation = installation;
  }

  /** Path of all objects of that kind that there can be. */
  allOf(resource: Resource): string {
    return this.#namespaces.all
      ? `${rootOf(resource)}/${resource}`
      : this.pathOf(resource, undefined);
  }

  /**
   * Path of an object, or of its collection.
   * @param namespace - `undefined`: the worker's own
   * @throws ComputeError `invalid` for a namespace that this worker does not use
   */
  pathOf(resource: Resource, namespace: string | undefined, name?: string): string {
    const collection = `${rootOf(resource)}/namespaces/${encodeURIComponent(this.#namespaceOf(namespace))}/${resource}`;
    return name === undefined ? collection : `${collection}/${encodeURIComponent(name)}`;
  }

  /** `undefined`: there is none, by the API server's own word. @throws ComputeError */
  async get<T>(
    resource: Resource,
    namespace: string | undefined,
    name: string,
    metadataOnly = false,
    signal?: AbortSignal,
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
   * Creates the object, or returns the one that an earlier try made. Between "it exists" and our look at it the old one may
   * have gone: then it is created after all.
   * @throws ComputeError; `invalid` also when the name is taken by somebody else's
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
        // Strict: a misspelt field of a pod template is told, not dropped.
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
      // What carries no name of an owner is meant to be shared: a claim that goes from runner to runner.
      if (
        isOfRunner(existing.metadata ?? {}, this.#installation, identity) ||
        object.metadata?.annotations?.[WORKFLOW_ID_ANNOTATION] === undefined
      )
        return existing;
      throw new ComputeError(
        'invalid',
        `${what} exists and belongs to something else: delete it, or start the runner under another workflow id`,
      );
    }
  }

  /** Lays annotations over those there are; `null` takes one away. Absent: fine. @throws ComputeError */
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
   * Deletes the object that was made for exactly this runner. Absent, or another's: left alone.
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
      // Another process may have made it anew.
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
    const found = await this.get<{ metadata?: V1ObjectMeta }>(resource, namespace, name, true);
    return found !== undefined && isOfRunner(found.metadata ?? {}, this.#installation, identity)
      ? found.metadata?.uid
      : undefined;
  }

  #describe(resource: Resource, namespace: string | undefined, name: string): string {
    return `${resource} ${this.#namespaceOf(namespace)}/${name}`;
  }

  /** Why requests cannot name this namespace; empty when they can. */
  namespaceErrors(namespace: string | undefined): string[] {
    const { default: home, all } = this.#namespaces;
    if (namespace === undefined || namespace === home || all) return [];
    return [
      `Namespace "${namespace}": this worker makes and watches runners in "${home}" only; leave it out, or let the worker use all namespaces`,
    ];
  }

  #namespaceOf(namespace: string | undefined): string {
    const [fault] = this.namespaceErrors(namespace);
    if (fault !== undefined) throw new ComputeError('invalid', fault);
    const { default: home, allowed } = this.#namespaces;
    if (namespace === undefined || matchesAny([home, ...allowed], namespace))
      return namespace ?? home;
    throw new ComputeError(
      'invalid',
      `Namespace "${namespace}" is not allowed by "namespaces" of the worker's pod policy: nothing is made, read, changed or deleted there`,
    );
  }
}
