/** Which registrations are ours: whoever can write to the Temporal namespace could else have anybody's removed. */
import { LRUCache } from 'lru-cache';
import type { Scope } from '../../core/domain/ciServer.ts';
import { placeName, type ServedPlace } from '../../core/domain/location.ts';
import { hashInRunnerName } from '../../core/domain/runnerName.ts';
import { isPlaceLabel, placeLabel } from '../compute/naming.ts';
import type { CiRunner } from '../ports.ts';

/** A runner's place at its CI server. */
export interface RegisteredAs {
  readonly credential: string;
  readonly scope: Scope;
  readonly name: string;
}

/** Ids by {@link keyOf}. What this process does not know costs one look at the CI server. */
const known = new LRUCache<string, number>({ max: 20_000 });

const keyOf = ({ credential, scope, name }: RegisteredAs): string =>
  `${credential}/${scope.kind}/${scope.name}/${name}`;

/** It was made by this process, or seen to be ours. */
export function noteOurs(runner: RegisteredAs, id: number): void {
  known.set(keyOf(runner), id);
}

export function isKnownOurs(runner: RegisteredAs, id: number): boolean {
  return known.get(keyOf(runner)) === id;
}

/** What shows that a registration is not Holdfast's, or of another place, for people. @param asked - the name that it should have */
export function whyNotOurs(
  { id, name, labels }: Pick<CiRunner, 'id' | 'name' | 'labels'>,
  asked: string,
  place: ServedPlace,
): string | undefined {
  if (name !== asked)
    return `registration ${id} is not that of ${asked} but of ${name}; nothing is removed: give the id and the name of one runner`;
  if (hashInRunnerName(name) === undefined)
    return `${name} is no runner of Holdfast's, by its name; nothing is removed: remove it at the CI server`;
  const places = labels.filter(isPlaceLabel);
  const isElsewhere =
    places.length > 0 &&
    place.allNamespaces !== true &&
    !places.includes(placeLabel(placeName(place)));
  return isElsewhere
    ? `${name} is a runner of another place than this worker's (${placeName(place)}), by its label ${places.join()}; nothing is removed: ask a worker of that place`
    : undefined;
}
