/**
 * Where a life's pods are. It is fixed when the life is admitted, because a pod that a worker does not find has not ended: that worker may
 * look in another cluster, in another namespace, or for another installation's pods. Pure.
 */
import { omitUndefined } from './omitUndefined.ts';

/** One place for pods. */
export interface Location {
  readonly compute: 'kubernetes' | 'process';
  /** `kubernetes`: UID of the namespace kube-system, which is as old as its cluster. `process`: a hash of the machine and its state directory. */
  readonly cluster: string;
  /** Name of the installation that owns the pods. */
  readonly installation: string;
  /** Absent where a compute has none. */
  readonly namespace?: string;
}

/** What one worker serves. Its `namespace` is that of runners that name none. */
export interface ServedLocation extends Location {
  /** Runners may name other namespaces, too. */
  readonly allNamespaces?: true;
}

/** The place of a new life. @param namespace - the one that its input names */
export function runnerLocation(
  { compute, cluster, installation, namespace: home }: ServedLocation,
  namespace: string | undefined,
): Location {
  return {
    compute,
    cluster,
    installation,
    ...omitUndefined({ namespace: home === undefined ? undefined : (namespace ?? home) }),
  };
}

/** May this worker look after the pods of that place? */
export function servesLocation(served: ServedLocation, place: Location): boolean {
  const isThere =
    served.compute === place.compute &&
    served.cluster === place.cluster &&
    served.installation === place.installation;
  return isThere && (served.allNamespaces === true || served.namespace === place.namespace);
}

/** The place in one word, the value of the search attribute `RunnerLocation`: `compute/cluster/installation/namespace`. */
export function formatLocation({
  compute,
  cluster,
  installation,
  namespace,
  allNamespaces,
}: ServedLocation): string {
  const last = allNamespaces === true ? '*' : namespace;
  return [compute, cluster, installation, ...(last === undefined ? [] : [last])].join('/');
}

/** Parses the text of {@link formatLocation}. Returns `undefined` if it is not a location. */
export function parseLocation(text: string): Location | undefined {
  const [compute, cluster, installation, namespace, ...more] = text.split('/');
  if (compute !== 'kubernetes' && compute !== 'process') return undefined;
  if (!cluster || !installation || more.length > 0) return undefined;
  return { compute, cluster, installation, ...omitUndefined({ namespace }) };
}
