/**
 * The inventory of a sweep: workflows, objects in the cluster and registrations, matched to one
 * another.
 */
import pMap from 'p-map';
import type { WorkflowExecutionInfo } from '@temporalio/client';
import {
  SEARCH_ATTRIBUTES,
  type RunnerPhase,
  type SweepReport,
} from '../../core/contract/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import {
  formatLocation,
  servedLocations,
  type ServedLocation,
} from '../../core/domain/location.ts';
import { parseRunnerNameHash } from '../../core/domain/runnerName.ts';
import { isOpen, isPaused } from '../../core/domain/workflowStatus.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import type { ObjectWithOwner, SweepInventory } from '../../core/sweep/decideSweep.ts';
import type {
  OwnerWorkflow,
  RunnerWorkflow,
  ObservedRegistration,
} from '../../core/sweep/facts.ts';
import { assessRunner } from '../../core/sweep/assessRunner.ts';
import { JOB_OBJECT_KINDS, type OwnedObject } from '../../core/sweep/ownedObject.ts';
import { isLocationLabel, locationLabel, runnerHash } from '../compute/naming.ts';
import type { OwnedObjects } from '../shared/ownedObjects.ts';
import { ComputeError } from '../ports/computeError.ts';
import { earlierRunnerCheck } from './earlierRunners.ts';
import { inspectJobObjects } from './jobObjects.ts';
import { listScopes, type ListedScope } from './listScopes.ts';
import { TaskQueuePollers } from './polledQueues.ts';
import type { SweepSources } from './sweepSources.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';
import { errorMessage } from '../../core/domain/errorMessage.ts';

/** Maximum number of concurrent requests to Temporal. */
const AT_ONCE = 10;
/**
 * Maximum number of registrations without this installation's label that one sweep looks up in
 * Temporal, which answers only a few such queries per second.
 */
const MAX_LOOKUPS = 20;

/** Lists that a worker may lack permission for. */
const OPTIONAL_LISTS: ReadonlySet<string> = new Set([
  'secrets',
  'claims',
  'container steps',
  'job secrets',
]);

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

type ObjectLists = Readonly<Record<'pod' | 'secret' | 'claim', readonly OwnedObject[]>>;

/** Complete lists: objects whose workflows are in this Temporal namespace, and the workflows. */
type Lists = ObjectLists & {
  /** All pods, also those whose workflows are in another Temporal namespace. */
  readonly allPods: readonly OwnedObject[];
  readonly running: WorkflowExecutionInfo[];
  readonly deregistrations: { workflowId: string; taskQueue: string }[];
};

const NOTHING = { notVisible: 0, foreign: 0 } as const;

/**
 * Separates the objects whose workflows this sweep can look up from those of other Temporal
 * namespaces. Objects without an identity, such as the claims of a set, count as its own; the sweep
 * does not touch them.
 */
function byTemporalNamespace(
  lists: ObjectLists,
  ownIds: ReadonlySet<string>,
): {
  own: ObjectLists;
  otherTemporal: NonNullable<SweepReport['otherTemporal']>;
  foreign: number;
} {
  const others = new Map<string, number>();
  let foreign = 0;
  const isOwn = ({ identity }: OwnedObject): boolean => {
    if (identity === undefined) return true;
    const { temporalNamespaceId: id } = identity;
    if (id === undefined) foreign += 1;
    else if (!ownIds.has(id)) others.set(id, (others.get(id) ?? 0) + 1);
    return id !== undefined && ownIds.has(id);
  };
  const own = {
    pod: lists.pod.filter(isOwn),
    secret: lists.secret.filter(isOwn),
    claim: lists.claim.filter(isOwn),
  };
  const otherTemporal = [...others].map(([namespaceId, objects]) => ({ namespaceId, objects }));
  return { own, otherTemporal, foreign };
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
  const { signal, progress } = sources;
  const incompleteLists: SweepReport['incompleteLists'] = [];
  const skippedLists: SweepReport['skippedLists'] = [];
  const examined: SweepReport['examined'] = {};
  const attempt = async <T>(list: string, run: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await run();
    } catch (error) {
      signal?.throwIfAborted();
      const reason = errorMessage(error);
      const isOptional =
        sources.resources === 'where permitted' &&
        OPTIONAL_LISTS.has(list) &&
        error instanceof ComputeError &&
        error.kind === 'forbidden';
      (isOptional ? skippedLists : incompleteLists).push({ list, reason });
      return undefined;
    }
  };

  const ownId = await attempt('workflows', async () => {
    await workflows.answers();
    return await workflows.namespaceId();
  });
  if (ownId === undefined) return { ...NOTHING, examined, incompleteLists, skippedLists };
  progress?.('listing pods, workflows and their objects');
  // List pods before workflows, so that the workflow of every listed pod is in the list.
  const pods = await attempt('pods', async () => await owned.list('pod', signal));
  const [secrets = [], claims = [], jobObjects, running, deregistrations] = await Promise.all([
    attempt('secrets', async () => await owned.list('secret', signal)),
    attempt('claims', async () => await owned.list('claim', signal)),
    Promise.all(
      JOB_OBJECT_KINDS.map(
        async (kind) => await attempt(`${kind}s`, async () => await owned.list(kind, signal)),
      ),
    ),
    attempt('workflows', async () => await workflows.running()),
    attempt('workflows that remove registrations', async () => await workflows.deregistrations()),
  ]);
  const isMissing = (list: string): boolean =>
    [...skippedLists, ...incompleteLists].some((each) => each.list === list);
  Object.assign(
    examined,
    omitUndefined({
      pods: pods?.length,
      runners: running?.length,
      secrets: isMissing('secrets') ? undefined : secrets.length,
      claims: isMissing('claims') ? undefined : claims.length,
    }),
  );
  if (
    pods === undefined ||
    running === undefined ||
    deregistrations === undefined ||
    incompleteLists.length > 0
  )
    return { ...NOTHING, examined, incompleteLists, skippedLists };
  const { own, otherTemporal, foreign } = byTemporalNamespace(
    { pod: pods, secret: secrets, claim: claims },
    new Set([ownId, ...(spec.takeOver === undefined ? [] : [spec.takeOver])]),
  );
  const lists: Lists = { ...own, running, deregistrations, allPods: pods };
  const seenSoFar = { examined, incompleteLists, skippedLists, foreign, otherTemporal };

  progress?.('describing the workflows of the listed objects');
  const queues = new TaskQueuePollers(sources.client, () => owned.now());
  const seen = await attempt('workflows', async () => {
    const ownerOf = await ownerWorkflows(lists, workflows);
    const remaining = jobObjects.flatMap((listed) => listed ?? []);
    return {
      ownerOf,
      jobObjects: await inspectJobObjects(remaining, pods, sources.compute, workflows),
      runners: await runningRunners(lists, workflows, queues, owned.now(), spec),
      locationKnown: running.length > 0 || (await workflows.locationKnown()),
    };
  });
  progress?.('listing registrations');
  const noted = [...own.pod, ...own.secret].flatMap(({ registration }) =>
    registration?.scope && registration.credential !== undefined
      ? [{ scope: registration.scope, credential: registration.credential }]
      : [],
  );
  const scopes = await attempt(
    'scopes',
    async () => await listScopes(sources, spec, workflows, noted),
  );
  incompleteLists.push(...(scopes?.incompleteLists ?? []));
  skippedLists.push(...(scopes?.skippedLists ?? []));
  const registrations =
    seen &&
    scopes &&
    (await attempt(
      'workflows',
      async () =>
        await registrationsOf(
          scopes.listed,
          lists,
          seen.ownerOf,
          // A label names only the location, which runners of another Temporal namespace share.
          otherTemporal.length > 0 ? new Set() : ourLabels(lists, served),
          workflows,
          queues,
        ),
    ));
  Object.assign(
    examined,
    omitUndefined({ scopes: scopes?.listed.length, registrations: registrations?.length }),
  );
  if (seen === undefined || registrations === undefined || incompleteLists.length > 0)
    return { ...seenSoFar, notVisible: scopes?.notVisible ?? 0 };
  const podsOf = Map.groupBy(own.pod, ({ identity }) => identity?.workflowId);
  const withOwner = (object: OwnedObject): ObjectWithOwner => ({
    object,
    owner: seen.ownerOf(object),
    used: (podsOf.get(object.identity?.workflowId) ?? []).some((pod) =>
      isOfSameRunner(object, pod),
    ),
  });
  const findings = {
    pods: own.pod.map(withOwner),
    resources: [...own.secret, ...own.claim].map(withOwner),
    jobObjects: seen.jobObjects,
    registrations,
    runners: withRegistrations(seen.runners, registrations),
    locationKnown: seen.locationKnown,
  };
  return { ...seenSoFar, findings, notVisible: scopes?.notVisible ?? 0 };
}

/** Adds to each runner the listed registration that its pod names. */
function withRegistrations(
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
const nameOf = ({ typedSearchAttributes }: WorkflowExecutionInfo): string =>
  typedSearchAttributes.get(SEARCH_ATTRIBUTES.name) ?? '';

/**
 * Returns a function that finds the workflow of an object. Temporal is queried for each workflow
 * that is not in the list of running ones, or is there with another runner's name.
 */
async function ownerWorkflows(
  { running, ...lists }: Lists,
  workflows: RunnerWorkflows,
): Promise<(object: OwnedObject) => OwnerWorkflow> {
  const hashes = new Map(
    running.map((each) => [each.workflowId, parseRunnerNameHash(nameOf(each))]),
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

async function runningRunners(
  { running, pod: pods }: Lists,
  workflows: RunnerWorkflows,
  queues: TaskQueuePollers,
  nowMs: number,
  spec: SweepSpec,
): Promise<RunnerWorkflow[]> {
  const podsOf = Map.groupBy(pods, ({ identity }) => identity?.workflowId ?? '');
  const found = await pMap(
    running,
    async (listed): Promise<RunnerWorkflow[]> => {
      const { workflowId, runId, taskQueue, startTime, parentExecution, typedSearchAttributes } =
        listed;
      const phase = (typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase) ??
        'Requested') as RunnerPhase;
      const job = parentExecution?.workflowId
        ? await workflows.job(parentExecution.workflowId)
        : undefined;
      const runner = {
        workflowId,
        runId,
        taskQueue,
        phase,
        startedAtMs: startTime.getTime(),
        runnerName: nameOf(listed),
        pods: podsOf.get(workflowId) ?? [],
        hasPoller: await queues.isPolled(taskQueue),
        willResume: false,
        ...omitUndefined({ job, paused: isPaused(listed.status) || undefined }),
      };
      return assessRunner(runner, nowMs, spec).kind === 'finding'
        ? await recheckRunner(runner, workflows)
        : [runner];
    },
    { concurrency: AT_ONCE },
  );
  return found.flat();
}

/**
 * Re-reads the workflow of a runner that seems to have lost its pod.
 * @returns an empty list if the workflow has ended since it was listed
 */
export async function recheckRunner(
  runner: RunnerWorkflow,
  workflows: RunnerWorkflows,
): Promise<RunnerWorkflow[]> {
  const description = await workflows.describe(runner.workflowId);
  if (description === undefined || !isOpen(description.status)) return [];
  const { scheduledTime, originalScheduledTime } = description.raw.pendingWorkflowTask ?? {};
  const pendingSince = originalScheduledTime ?? scheduledTime;
  const taskPendingSinceMs = pendingSince ? Number(pendingSince.seconds ?? 0) * 1_000 : undefined;
  const { runId } = description;
  const input = await workflows.input({ workflowId: runner.workflowId, runId });
  return [
    {
      ...runner,
      runId,
      willResume: input?.replacesLost === true,
      ...omitUndefined({
        taskPendingSinceMs,
        paused: isPaused(description.status) || undefined,
      }),
    },
  ];
}

async function registrationsOf(
  listed: readonly ListedScope[],
  lists: Lists,
  ownerOf: (object: OwnedObject) => OwnerWorkflow,
  labels: ReadonlySet<string>,
  workflows: RunnerWorkflows,
  queues: TaskQueuePollers,
): Promise<ObservedRegistration[]> {
  const ofRunning = [...lists.pod, ...lists.secret].filter(
    (object) => ownerOf(object).state === 'running',
  );
  const hashesOf = (objects: readonly OwnedObject[]): (string | undefined)[] =>
    objects.map(({ identity }) => identity && runnerHash(identity));
  const alive = new Set([
    ...lists.running.map((each) => parseRunnerNameHash(nameOf(each))),
    ...hashesOf(ofRunning),
  ]);
  const withPod = new Set(hashesOf(lists.allPods));
  const isEarlier = earlierRunnerCheck(lists.running.map(nameOf), lists.allPods);
  const removals = new Map(
    lists.deregistrations.map(({ workflowId, taskQueue }) => [workflowId, taskQueue]),
  );
  const found: ObservedRegistration[] = [];
  let lookups = 0;
  for (const { scope, credential, runners } of listed) {
    for (const { id, name, online, busy, labels: ownLabels } of runners) {
      const hash = parseRunnerNameHash(name);
      const isAlive = hash !== undefined && alive.has(hash);
      const isSuperseded = isAlive && isEarlier(name);
      const isLabelled =
        hash !== undefined && ownLabels.some((label) => labels.has(label.toLowerCase()));
      const isRecorded =
        hash !== undefined &&
        !isAlive &&
        !isLabelled &&
        !online &&
        !busy &&
        (!ownLabels.some(isLocationLabel) || labels.size === 0) &&
        lookups++ < MAX_LOOKUPS &&
        (await workflows.knowsRunner(name));
      const removal = `deregistration-${name}`;
      const queue = removals.get(removal);
      const deregistrationId =
        queue !== undefined && (await queues.isPolled(queue)) ? removal : undefined;
      const proofs = [isLabelled && ('label' as const), isRecorded && ('record' as const)];
      const proof = proofs.find((each) => each !== false);
      found.push({
        scope,
        credential,
        id,
        name,
        online,
        busy,
        hasRunner: isAlive && !isSuperseded,
        hasPod: hash !== undefined && !isSuperseded && withPod.has(hash),
        ...omitUndefined({ proof, deregistrationId }),
        ...(isSuperseded ? { superseded: true as const } : {}),
      });
    }
  }
  return found;
}

/** Returns the labels of the locations that this sweep serves or that running workflows have. */
function ourLabels({ running }: Lists, served: ServedLocation): ReadonlySet<string> {
  const locations = servedLocations(served).map(formatLocation);
  const ofRunning = running.flatMap(
    ({ typedSearchAttributes }) => typedSearchAttributes.get(SEARCH_ATTRIBUTES.place) ?? [],
  );
  return new Set([...locations, ...ofRunning].map(locationLabel));
}
