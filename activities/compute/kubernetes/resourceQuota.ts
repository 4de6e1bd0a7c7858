/** Finds out whether a quota of a namespace admits another pod. */
import type { V1Container, V1Pod, V1ResourceQuota } from '@kubernetes/client-node';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, toComputeError } from './errors.ts';

/** Time for which a missing permission to list quotas is remembered (ms). */
const FORBIDDEN_MS = 10 * 60_000;

/** Reads the quotas of namespaces, if the worker may. */
export class QuotaReader {
  readonly #api: ApiServer;
  #forbiddenUntil = 0;

  constructor(api: ApiServer) {
    this.#api = api;
  }

  /**
   * Returns which quota does not admit another pod like this one, such as `quota ci used up
   * (requests.cpu)`.
   * @param like - absent: a pod without requests
   * @returns `undefined` if there is none, or the worker may not list quotas
   * @throws ComputeError
   */
  async exhausted(namespace: string, like: V1Pod | undefined): Promise<string | undefined> {
    if (performance.now() < this.#forbiddenUntil) return undefined;
    try {
      const { items } = await this.#api.call<{ items: V1ResourceQuota[] }>({
        verb: 'list',
        resource: 'resourcequotas',
        path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/resourcequotas`,
      });
      return exhaustedQuota(items, like);
    } catch (error) {
      if (apiFailure(error)?.status !== 403) throw toComputeError(error, 'list resourcequotas');
      this.#forbiddenUntil = performance.now() + FORBIDDEN_MS;
      return undefined;
    }
  }
}

/**
 * Returns the first quota that does not admit another pod. A quota for some pods only is left out:
 * only the API server knows to which pods it applies.
 */
export function exhaustedQuota(
  quotas: readonly V1ResourceQuota[],
  like: V1Pod | undefined,
): string | undefined {
  for (const { metadata, spec, status } of quotas) {
    if ((spec?.scopes?.length ?? 0) > 0 || spec?.scopeSelector !== undefined) continue;
    const full = Object.entries(status?.hard ?? {}).flatMap(([resource, hard]) => {
      const need = requested(resource, like);
      if (need === undefined) return [];
      const [limit, used] = [quantity(hard), quantity(status?.used?.[resource] ?? '0')];
      return used + need > limit || used >= limit ? [resource] : [];
    });
    if (full.length > 0) return `quota ${metadata?.name ?? ''} used up (${full.join(', ')})`;
  }
  return undefined;
}

/** Resources that a quota may name without `requests.`. */
const PLAIN: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage']);

/** Returns how much of a quota's resource the pod counts for, or `undefined` if it has none of it. */
function requested(resource: string, like: V1Pod | undefined): number | undefined {
  if (resource === 'pods' || resource === 'count/pods') return 1;
  const [, kind = 'requests', name = resource] = /^(requests|limits)\.(.+)$/.exec(resource) ?? [];
  if (kind === 'requests' && name === resource && !PLAIN.has(resource)) return undefined;
  const { containers = [], initContainers = [] } = like?.spec ?? {};
  const of = ({ resources }: V1Container): number =>
    quantity(resources?.[kind as 'requests' | 'limits']?.[name] ?? '0');
  // https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
  let [sidecars, highest] = [0, 0];
  for (const each of initContainers) {
    if (each.restartPolicy === 'Always') sidecars += of(each);
    else highest = Math.max(highest, sidecars + of(each));
  }
  const need = Math.max(
    highest,
    containers.reduce((sum, each) => sum + of(each), sidecars),
  );
  // The pod has none of it, or it is not a resource of pods, such as the storage of claims.
  return !PLAIN.has(name) && need === 0 ? undefined : need;
}

const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
}; // prettier-ignore

/** Returns the value of a Kubernetes quantity, such as 0.5 for `500m`; NaN for an invalid one. */
export function quantity(text: string): number {
  const [, number = '', suffix = ''] =
    /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([numkMGTPE]|[KMGTPE]i)?$/.exec(text) ?? [];
  return number === '' ? Number.NaN : Number(number) * (FACTORS[suffix] ?? Number.NaN);
}
