/**
 * Location of a runner's pods. It is fixed at admission, because a pod that a worker does not find
 * has not ended: the worker may use another cluster, another namespace, or another installation.
 * Pure.
 */
import { omitUndefined } from './omitUndefined.ts';

/** One location of pods. */
export interface Location {
  readonly compute: 'kubernetes' | 'process';
  /**
   * `kubernetes`: UID of the namespace kube-system, which exists as long as its cluster. `process`:
   * hash of the machine and its state directory.
   */
  readonly cluster: string;
  /** Name of the installation that owns the pods. */
  readonly installation: string;
  /** Absent if the compute has no namespaces. */
  readonly namespace?: string;
}

/**
 * Location that one worker serves. Its `namespace` is that of runners without a namespace of their
 * own.
 */
export interface ServedLocation extends Location {
  /** Other namespaces that runners may name. @default none */
  readonly otherNamespaces?: readonly string[];
}

/**
 * Returns the location of a new runner.
 * @param namespace - namespace in its input
 */
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

/** Returns whether a worker may manage the pods of a location. */
export function servesLocation(served: ServedLocation, place: Location): boolean {
  const name = formatLocation(place);
  return servedLocations(served).some((each) => formatLocation(each) === name);
}

/** Returns each location that a worker serves, that of runners without a namespace first. */
export function servedLocations(served: ServedLocation): Location[] {
  return [undefined, ...(served.otherNamespaces ?? [])].map((namespace) =>
    runnerLocation(served, namespace),
  );
}

/**
 * Formats a location for the search attribute `RunnerLocation`:
 * `compute/cluster/installation/namespace`.
 */
export function formatLocation({ compute, cluster, installation, namespace }: Location): string {
  return [compute, cluster, installation, ...(namespace === undefined ? [] : [namespace])].join(
    '/',
  );
}

/** Formats a served location for people: its namespaces are separated by commas. */
export function formatServedLocation(served: ServedLocation): string {
  return [formatLocation(served), ...(served.otherNamespaces ?? [])].join(',');
}

/** Parses the text of {@link formatLocation}. Returns `undefined` if it is not a location. */
export function parseLocation(text: string): Location | undefined {
  const [compute, cluster, installation, namespace, ...more] = text.split('/');
  if (compute !== 'kubernetes' && compute !== 'process') return undefined;
  if (!cluster || !installation || more.length > 0) return undefined;
  return { compute, cluster, installation, ...omitUndefined({ namespace }) };
}
