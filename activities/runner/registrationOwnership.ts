/** Which registrations are ours: whoever can write to the Temporal namespace could else have anybody's removed. */
import { LRUCache } from 'lru-cache';
import type { Scope } from '../../core/domain/ciServer.ts';
import { formatLocation, type ServedLocation } from '../../core/domain/location.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { isLocationLabel, locationLabel } from '../compute/naming.ts';
import type { CiRunner } from '../ports.ts';

/** A runner's place at its CI server. */
export interface RegistrationKey {
  readonly credential: string;
  readonly scope: Scope;
  readonly name: string;
}

/** Ids by {@link keyOf}. What this process does not know costs one look at the CI server. */
const known = new LRUCache<string, string>({ max: 20_000 });

const keyOf = ({ credential, scope, name }: RegistrationKey): string =>
  `${credential}/${scope.kind}/${scope.name}/${name}`;

/** It was made by this process, or seen to be ours. */
export function markOwned(runner: RegistrationKey, id: string): void {
  known.set(keyOf(runner), id);
}

export function isKnownOwned(runner: RegistrationKey, id: string): boolean {
  return known.get(keyOf(runner)) === id;
}

/** What shows that a registration is not Holdfast's, or of another place, for people. @param asked - the name that it should have */
export function ownershipError(
  { id, name, labels }: Pick<CiRunner, 'id' | 'name' | 'labels'>,
  asked: string,
  place: ServedLocation,
): string | undefined {
  if (name !== asked)
    return `registration ${id} is not that of ${asked} but of ${name}; nothing is removed: give the id and the name of one runner`;
  if (parseRunnerNameHash(name) === undefined)
    return `${name} is no runner of Holdfast's, by its name; nothing is removed: remove it at the CI server`;
  const places = labels.filter(isLocationLabel);
  const isElsewhere =
    places.length > 0 &&
    place.allNamespaces !== true &&
    !places.includes(locationLabel(formatLocation(place)));
  return isElsewhere
    ? `${name} is a runner of another place than this worker's (${formatLocation(place)}), by its label ${places.join()}; nothing is removed: ask a worker of that place`
    : undefined;
}
