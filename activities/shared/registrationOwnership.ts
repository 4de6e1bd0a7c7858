/**
 * Checks that a registration belongs to this installation. Without it, anyone who can write to the
 * Temporal namespace could remove any registration.
 */
import { LRUCache } from 'lru-cache';
import type { Scope } from '../../core/domain/ciServer.ts';
import {
  formatLocation,
  formatServedLocation,
  servedLocations,
  type ServedLocation,
} from '../../core/domain/location.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { isLocationLabel, locationLabel } from '../compute/naming.ts';
import type { CiRunner } from '../ports/ciServer.ts';

/** Credential, scope and name of a registration. */
export interface RegistrationKey {
  readonly credential: string;
  readonly scope: Scope;
  readonly name: string;
}

/** Registration IDs by {@link keyOf}. A missing one costs one request to the CI server. */
const known = new LRUCache<string, string>({ max: 20_000 });

const keyOf = ({ credential, scope, name }: RegistrationKey): string =>
  `${credential}/${scope.kind}/${scope.name}/${name}`;

/**
 * Records that this process created the registration, or has verified that it belongs to this
 * installation.
 */
export function markOwned(runner: RegistrationKey, id: string): void {
  known.set(keyOf(runner), id);
}

/**
 * Returns whether this process knows that the registration belongs to this installation. `false`
 * means that the CI server must be queried.
 */
export function isKnownOwned(runner: RegistrationKey, id: string): boolean {
  return known.get(keyOf(runner)) === id;
}

/**
 * Returns why a registration does not belong to this installation or location. The text is shown to
 * people.
 * @param asked - the name that it must have
 * @returns `undefined` if it belongs to this installation and location
 */
export function ownershipError(
  { id, name, labels }: Pick<CiRunner, 'id' | 'name' | 'labels'>,
  asked: string,
  place: ServedLocation,
): string | undefined {
  if (name !== asked)
    return `registration ${id} is not that of ${asked} but of ${name}; nothing was removed: give the id and the name of one runner`;
  if (parseRunnerNameHash(name) === undefined) return notByName(name);
  const places = labels.filter(isLocationLabel);
  const own = servedLocations(place).map((each) => locationLabel(formatLocation(each)));
  const isElsewhere = places.length > 0 && !places.some((label) => own.includes(label));
  return isElsewhere
    ? `${name} is a runner of another place than this worker's (${formatServedLocation(place)}), by its label ${places.join()}; nothing was removed: ask a worker of that place`
    : undefined;
}

/** Returns the error of a registration whose name is not that of a runner of Holdfast. */
export const notByName = (name: string): string =>
  `${name} is not a runner of Holdfast, by its name; nothing was removed: remove it at the CI server`;
