/** Client for RunnerSet resources at the API server. */
import type { ApiServer } from '../../activities/compute/kubernetes/apiServer.ts';
import {
  apiFailure,
  isNotFound,
  toComputeError,
} from '../../activities/compute/kubernetes/errors.ts';
import { listObjects } from '../../activities/compute/kubernetes/objectList.ts';
import { openWatch, type WatchEvent } from '../../activities/compute/kubernetes/openWatch.ts';
import { RUNNER_SETS, type RunnerSetResource } from './runnerSetResource.ts';

const { group, version, plural, listKind } = RUNNER_SETS;

/** Client for the RunnerSet resources of one namespace. */
export class ResourceApi {
  readonly #api: ApiServer;
  readonly #path: string;

  constructor(api: ApiServer, namespace: string) {
    this.#api = api;
    this.#path = `/apis/${group}/${version}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
  }

  /**
   * Lists the resources.
   * @returns the resources, and the resource version from which a watch continues
   * @throws Error
   */
  async list(
    signal: AbortSignal,
  ): Promise<{ resources: RunnerSetResource[]; resourceVersion: string }> {
    const resources: RunnerSetResource[] = [];
    try {
      const resourceVersion = await listObjects<RunnerSetResource>(this.#api, listKind, {
        resource: plural,
        path: this.#path,
        signal,
        onObject: (resource) => resources.push(resource),
      });
      return { resources, resourceVersion };
    } catch (error) {
      throw explained(error, `list ${plural}`);
    }
  }

  /**
   * Watches the resources until the server ends the request, shortly before `watchTimeoutMs` has
   * passed.
   * @throws as {@link openWatch} does
   */
  async watch(
    resourceVersion: string,
    watchTimeoutMs: number,
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent<RunnerSetResource>>> {
    return await openWatch<RunnerSetResource>(this.#api, {
      resource: plural,
      path: this.#path,
      resourceVersion,
      watchTimeoutMs,
      signal,
    });
  }

  /**
   * Returns the resource, or `undefined` if the API server has none of this name.
   * @throws Error
   */
  async get(name: string): Promise<RunnerSetResource | undefined> {
    try {
      return await this.#api.call<RunnerSetResource & { kind: string }>({
        verb: 'get',
        resource: plural,
        path: `${this.#path}/${encodeURIComponent(name)}`,
      });
    } catch (error) {
      if (isNotFound(error, name)) return undefined;
      throw explained(error, `get ${plural} ${name}`);
    }
  }

  /**
   * Patches the status of a resource. Does nothing if the resource is gone.
   * @throws Error
   */
  async patchStatus(name: string, status: object): Promise<void> {
    try {
      await this.#api.call({
        verb: 'patch',
        resource: plural,
        path: `${this.#path}/${encodeURIComponent(name)}/status`,
        body: { status },
      });
    } catch (error) {
      if (!isNotFound(error, name)) throw explained(error, `patch ${plural}/status ${name}`);
    }
  }
}

/**
 * Adds the fix to an error for a missing definition or permission, which only an administrator can
 * add.
 */
function explained(error: unknown, what: string): Error {
  const known = toComputeError(error, what);
  const failure = apiFailure(error);
  if (failure?.status === 404)
    return new Error(
      `${known.message}; apply the definition of RunnerSet: kubectl apply --server-side --force-conflicts -f deploy/chart/crds`,
      { cause: error },
    );
  if (failure?.status === 403)
    return new Error(
      `${known.message}; the worker's Role needs get, list and watch on ${plural}.${group}, and patch on ${plural}/status`,
      { cause: error },
    );
  return known;
}
