/** The workflows and the objects in the cluster that a sweep examines. */
import type { WorkflowExecutionInfo } from '@temporalio/client';
import type { SweepReport } from '../../core/contract/index.ts';
import { JOB_OBJECT_KINDS, type OwnedObject } from '../../core/sweep/ownedObject.ts';
import type { SweepSources } from './sweepSources.ts';
import type { SweepSpec } from '../../core/input/sweep.ts';
import type { OwnedObjects } from '../shared/ownedObjects.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';
import type { ListAttempts } from './listAttempts.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

type ObjectLists = Readonly<Record<'pod' | 'secret' | 'claim', readonly OwnedObject[]>>;

/** Complete lists: objects whose workflows are in this Temporal namespace, and the workflows. */
export type Lists = ObjectLists & {
  /** All pods, also those whose workflows are in another Temporal namespace. */
  readonly allPods: readonly OwnedObject[];
  /** Objects of jobs, as far as the worker may list them. */
  readonly jobObjects: readonly OwnedObject[];
  readonly running: WorkflowExecutionInfo[];
  readonly deregistrations: { workflowId: string; taskQueue: string }[];
  /** Number of objects of each other Temporal namespace. */
  readonly otherTemporal: NonNullable<SweepReport['otherTemporal']>;
  /** Number of objects without the annotation of the Temporal namespace of their workflow. */
  readonly foreign: number;
};

/** Number of objects that were listed, and the lists if they are complete. */
export interface ListedObjects {
  readonly examined: SweepReport['examined'];
  readonly lists?: Lists;
}

/**
 * Lists the workflows and the objects of the cluster.
 * @throws the abort reason of the signal. All other failures are noted in `attempts`.
 */
export async function listObjects(
  { signal, progress }: SweepSources,
  spec: SweepSpec,
  owned: OwnedObjects,
  workflows: RunnerWorkflows,
  attempts: ListAttempts,
): Promise<ListedObjects> {
  const list = async (
    name: string,
    kind: OwnedObject['kind'],
  ): Promise<OwnedObject[] | undefined> =>
    await attempts.read(name, async () => await owned.list(kind, signal));
  const ownId = await attempts.read('workflows', async () => {
    await workflows.answers();
    return await workflows.namespaceId();
  });
  if (ownId === undefined) return { examined: {} };
  progress?.('listing pods, workflows and their objects');
  // List pods before workflows, so that the workflow of every listed pod is in the list.
  const pods = await list('pods', 'pod');
  const [secrets = [], claims = [], jobObjects, running, deregistrations] = await Promise.all([
    list('secrets', 'secret'),
    list('claims', 'claim'),
    Promise.all(JOB_OBJECT_KINDS.map(async (kind) => await list(`${kind}s`, kind))),
    attempts.read('workflows', async () => await workflows.running()),
    attempts.read(
      'workflows that remove registrations',
      async () => await workflows.deregistrations(),
    ),
  ]);
  const examined = omitUndefined({
    pods: pods?.length,
    runners: running?.length,
    secrets: attempts.isMissing('secrets') ? undefined : secrets.length,
    claims: attempts.isMissing('claims') ? undefined : claims.length,
  });
  if (
    pods === undefined ||
    running === undefined ||
    deregistrations === undefined ||
    attempts.incompleteLists.length > 0
  )
    return { examined };
  const { own, ...others } = byTemporalNamespace(
    { pod: pods, secret: secrets, claim: claims },
    new Set([ownId, ...(spec.takeOver === undefined ? [] : [spec.takeOver])]),
  );
  const remaining = jobObjects.flatMap((listed) => listed ?? []);
  const lists = { ...own, ...others, running, deregistrations, allPods: pods };
  return { examined, lists: { ...lists, jobObjects: remaining } };
}

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
