/** The registrations that a sweep examines, matched to runners. */
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  formatLocation,
  type ServedLocation,
  servedLocations,
} from '../../core/domain/location.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import type {
  ObservedRegistration,
  OwnerWorkflow,
  RunnerWorkflow,
} from '../../core/sweep/facts.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';
import { isLocationLabel, locationLabel, runnerHash } from '../compute/naming.ts';
import { earlierRunnerCheck } from './earlierRunners.ts';
import type { ListedScope } from './listScopes.ts';
import type { TaskQueuePollers } from './polledQueues.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';
import type { Lists } from './inventoryLists.ts';
import { runnerNameOf } from './runningRunners.ts';
import type { CiRunner } from '../ports/ciServer.ts';

/**
 * Maximum number of registrations without this installation's label that one sweep looks up in
 * Temporal, which answers only a few such queries per second.
 */
const MAX_LOOKUPS = 20;

/** Adds to each runner the listed registration that its pod names. */
export function withRegistrations(
  runners: readonly RunnerWorkflow[],
  registrations: readonly ObservedRegistration[],
): RunnerWorkflow[] {
  const keyOf = ({ scope, name }: Pick<ObservedRegistration, 'scope' | 'name'>): string =>
    `${scope.kind} ${scope.name} ${name}`;
  const listed = new Map(registrations.map((registration) => [keyOf(registration), registration]));
  return runners.map((runner) => {
    const [noted] = runner.pods.flatMap(({ registration }) =>
      registration?.scope === undefined
        ? []
        : [{ scope: registration.scope, name: registration.name }],
    );
    return { ...runner, ...omitUndefined({ registration: noted && listed.get(keyOf(noted)) }) };
  });
}

/** Facts of the other lists about the runners of registrations. */
interface KnownRunners {
  /** Labels of locations that only runners of this installation have. */
  readonly labels: ReadonlySet<string>;
  /** Hashes of the names of running runners. */
  readonly alive: ReadonlySet<string | undefined>;
  /** Hashes of the names of runners with a pod. */
  readonly withPod: ReadonlySet<string | undefined>;
  readonly isEarlier: (name: string) => boolean;
  /** Task queues of the workflows that remove registrations, by workflow ID. */
  readonly removals: ReadonlyMap<string, string>;
}

function knownRunners(
  lists: Lists,
  ownerOf: (object: OwnedObject) => OwnerWorkflow,
  served: ServedLocation,
): KnownRunners {
  const ofRunning = [...lists.pod, ...lists.secret].filter(
    (object) => ownerOf(object).state === 'running',
  );
  const hashesOf = (objects: readonly OwnedObject[]): (string | undefined)[] =>
    objects.map(({ identity }) => identity && runnerHash(identity));
  return {
    // A label names only the location, which runners of another Temporal namespace share.
    labels: lists.otherTemporal.length > 0 ? new Set() : ourLabels(lists, served),
    alive: new Set([
      ...lists.running.map((each) => parseRunnerNameHash(runnerNameOf(each))),
      ...hashesOf(ofRunning),
    ]),
    withPod: new Set(hashesOf(lists.allPods)),
    isEarlier: earlierRunnerCheck(lists.running.map(runnerNameOf), lists.allPods),
    removals: new Map(
      lists.deregistrations.map(({ workflowId, taskQueue }) => [workflowId, taskQueue]),
    ),
  };
}

/** Returns the listed registrations, with what is known about their runners. */
export async function observedRegistrations(
  listed: readonly ListedScope[],
  lists: Lists,
  ownerOf: (object: OwnedObject) => OwnerWorkflow,
  served: ServedLocation,
  workflows: RunnerWorkflows,
  queues: TaskQueuePollers,
): Promise<ObservedRegistration[]> {
  const known = knownRunners(lists, ownerOf, served);
  const found: ObservedRegistration[] = [];
  let lookups = 0;
  const isRecorded = async (name: string): Promise<boolean> =>
    lookups++ < MAX_LOOKUPS && (await workflows.knowsRunner(name));
  for (const { scope, credential, runners } of listed)
    for (const runner of runners) {
      const { id, name, online, busy } = runner;
      const hash = parseRunnerNameHash(name);
      const isAlive = hash !== undefined && known.alive.has(hash);
      const isSuperseded = isAlive && known.isEarlier(name);
      const removal = `deregistration-${name}`;
      const proof = await ownershipProof(runner, isAlive, known.labels, isRecorded);
      const queue = known.removals.get(removal);
      const deregistrationId =
        queue !== undefined && (await queues.isPolled(queue)) ? removal : undefined;
      found.push({
        scope,
        credential,
        id,
        name,
        online,
        busy,
        hasRunner: isAlive && !isSuperseded,
        hasPod: hash !== undefined && !isSuperseded && known.withPod.has(hash),
        ...omitUndefined({ proof, deregistrationId }),
        ...(isSuperseded ? { superseded: true as const } : {}),
      });
    }
  return found;
}

/** Returns what proves that the registration belongs to this installation, if anything does. */
async function ownershipProof(
  { name, online, busy, labels }: CiRunner,
  isAlive: boolean,
  ours: ReadonlySet<string>,
  isRecorded: (name: string) => Promise<boolean>,
): Promise<ObservedRegistration['proof']> {
  if (parseRunnerNameHash(name) === undefined) return undefined;
  if (labels.some((label) => ours.has(label.toLowerCase()))) return 'label';
  const mayBeRecorded =
    !isAlive && !online && !busy && (!labels.some(isLocationLabel) || ours.size === 0);
  return mayBeRecorded && (await isRecorded(name)) ? 'record' : undefined;
}

/** Returns the labels of the locations that this sweep serves or that running workflows have. */
function ourLabels({ running }: Lists, served: ServedLocation): ReadonlySet<string> {
  const locations = servedLocations(served).map(formatLocation);
  const ofRunning = running.flatMap(
    ({ typedSearchAttributes }) => typedSearchAttributes.get(SEARCH_ATTRIBUTES.place) ?? [],
  );
  return new Set([...locations, ...ofRunning].map(locationLabel));
}
