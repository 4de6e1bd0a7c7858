/**
 * The inventory of a sweep: workflows, objects in the cluster and registrations, matched to one
 * another.
 */
import pMap from 'p-map';
import type { SweepReport } from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { ServedLocation } from '../../core/domain/location.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import type { CredentialScope, SweepSpec } from '../../core/input/sweep.ts';
import type { ObjectWithOwner, SweepInventory } from '../../core/sweep/decideSweep.ts';
import type {
  ObservedRegistration,
  OwnerWorkflow,
  RunnerWorkflow,
} from '../../core/sweep/facts.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';
import { runnerHash } from '../compute/naming.ts';
import type { OwnedObjects } from '../shared/ownedObjects.ts';
import { inspectJobObjects } from './jobObjects.ts';
import { listScopes } from './listScopes.ts';
import { TaskQueuePollers } from './polledQueues.ts';
import type { SweepSources } from './sweepSources.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';
import { listObjects, type Lists } from './inventoryLists.ts';
import { observedRegistrations, withRegistrations } from './observedRegistrations.ts';
import { runnerNameOf, runningRunners } from './runningRunners.ts';
import { ListAttempts } from './listAttempts.ts';

/** Maximum number of concurrent requests to Temporal. */
const AT_ONCE = 10;

/** Inventory of a sweep. `findings` is absent if any list is incomplete. */
export interface Inventory extends Pick<
  SweepReport,
  'examined' | 'incompleteLists' | 'skippedLists' | 'otherTemporal'
> {
  readonly findings?: SweepInventory;
  /** Number of scopes that no credential can see any more. */
  readonly notVisible: number;
  /** Number of objects without the annotation of the Temporal namespace of their workflow. */
  readonly foreign: number;
}

/**
 * Collects the inventory of a sweep.
 * @throws the abort reason of the signal. All other failures are reported in `incompleteLists`.
 */
export async function collectInventory(
  sources: SweepSources,
  spec: SweepSpec,
  served: ServedLocation,
  owned: OwnedObjects,
  workflows: RunnerWorkflows,
): Promise<Inventory> {
  const attempts = new ListAttempts(sources);
  const { incompleteLists, skippedLists } = attempts;
  const { examined, lists } = await listObjects(sources, spec, owned, workflows, attempts);
  if (lists === undefined)
    return { examined, incompleteLists, skippedLists, notVisible: 0, foreign: 0 };
  sources.progress?.('describing the workflows of the listed objects');
  const queues = new TaskQueuePollers(sources.client, () => owned.now());
  const described = await attempts.read(
    'workflows',
    async () => await describeWorkflows(lists, sources, spec, owned.now(), workflows, queues),
  );
  sources.progress?.('listing registrations');
  const scopes = await attempts.read(
    'scopes',
    async () => await listScopes(sources, spec, workflows, notedScopes(lists)),
  );
  incompleteLists.push(...(scopes?.incompleteLists ?? []));
  skippedLists.push(...(scopes?.skippedLists ?? []));
  const registrations =
    described &&
    scopes &&
    (await attempts.read('workflows', async () => {
      const { ownerOf } = described;
      return await observedRegistrations(scopes.listed, lists, ownerOf, served, workflows, queues);
    }));
  const { foreign, otherTemporal } = lists;
  const inventory = {
    examined: {
      ...examined,
      ...omitUndefined({ scopes: scopes?.listed.length, registrations: registrations?.length }),
    },
    incompleteLists,
    skippedLists,
    foreign,
    otherTemporal,
    notVisible: scopes?.notVisible ?? 0,
  };
  return described === undefined || registrations === undefined || incompleteLists.length > 0
    ? inventory
    : { ...inventory, findings: findingsOf(lists, described, registrations) };
}

/** Reports of Temporal on the listed objects and workflows. */
interface DescribedWorkflows {
  readonly ownerOf: (object: OwnedObject) => OwnerWorkflow;
  readonly jobObjects: SweepInventory['jobObjects'];
  readonly runners: readonly RunnerWorkflow[];
  readonly locationKnown: boolean;
}

async function describeWorkflows(
  lists: Lists,
  { compute }: SweepSources,
  spec: SweepSpec,
  nowMs: number,
  workflows: RunnerWorkflows,
  queues: TaskQueuePollers,
): Promise<DescribedWorkflows> {
  return {
    ownerOf: await ownerWorkflows(lists, workflows),
    jobObjects: await inspectJobObjects(lists.jobObjects, lists.allPods, compute, workflows),
    runners: await runningRunners(lists, workflows, queues, nowMs, spec),
    locationKnown: lists.running.length > 0 || (await workflows.locationKnown()),
  };
}

function findingsOf(
  { pod: pods, secret, claim }: Lists,
  { ownerOf, jobObjects, runners, locationKnown }: DescribedWorkflows,
  registrations: ObservedRegistration[],
): SweepInventory {
  const podsOf = Map.groupBy(pods, ({ identity }) => identity?.workflowId);
  const withOwner = (object: OwnedObject): ObjectWithOwner => ({
    object,
    owner: ownerOf(object),
    used: (podsOf.get(object.identity?.workflowId) ?? []).some((pod) =>
      isOfSameRunner(object, pod),
    ),
  });
  return {
    pods: pods.map(withOwner),
    resources: [...secret, ...claim].map(withOwner),
    jobObjects,
    registrations,
    runners: withRegistrations(runners, registrations),
    locationKnown,
  };
}

/** Returns the scopes in which the listed pods and Secrets have a registration. */
function notedScopes({ pod, secret }: Lists): CredentialScope[] {
  return [...pod, ...secret].flatMap(({ registration }) =>
    registration?.scope && registration.credential !== undefined
      ? [{ scope: registration.scope, credential: registration.credential }]
      : [],
  );
}

/** Returns whether the pod uses this Secret or claim. */
export function isOfSameRunner({ kind, identity }: OwnedObject, pod: OwnedObject): boolean {
  const isSameExecution =
    identity?.workflowId === pod.identity?.workflowId &&
    identity?.firstRunId === pod.identity?.firstRunId;
  return isSameExecution && (kind === 'claim' || identity?.attempt === pod.identity?.attempt);
}

const executionKey = ({
  workflowId,
  firstRunId,
}: {
  readonly workflowId: string;
  readonly firstRunId: string;
}): string => `${workflowId} ${firstRunId}`;

/**
 * Returns a function that finds the workflow of an object. Temporal is queried for each workflow
 * that is not in the list of running ones, or is there with another runner's name.
 */
async function ownerWorkflows(
  { running, ...lists }: Lists,
  workflows: RunnerWorkflows,
): Promise<(object: OwnedObject) => OwnerWorkflow> {
  const hashes = new Map(
    running.map((each) => [each.workflowId, parseRunnerNameHash(runnerNameOf(each))]),
  );
  const identities = new Map(
    [...lists.pod, ...lists.secret, ...lists.claim].flatMap(({ identity }) =>
      identity ? [[executionKey(identity), identity] as const] : [],
    ),
  );
  const known = new Map<string, OwnerWorkflow>();
  await pMap(
    identities,
    async ([key, identity]) => {
      known.set(
        key,
        hashes.get(identity.workflowId) === runnerHash(identity)
          ? { state: 'running' }
          : await workflows.owner(identity),
      );
    },
    { concurrency: AT_ONCE },
  );
  return ({ identity }) => (identity && known.get(executionKey(identity))) ?? { state: 'unknown' };
}
