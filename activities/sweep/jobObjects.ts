/** What jobs have left beside runners' pods, as a sweep sees it; see activities/compute/kubernetes/jobPodOwnership.ts. */
import pMap from 'p-map';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { JobObjectUse } from '../../core/sweep/decideSweep.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';
import { workflowIdInPodName } from '../compute/naming.ts';
import type { Compute } from '../ports.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';

const AT_ONCE = 5;

/** Is its runner's pod there, whoever's it is, and was it a runner of ours? Costs a request or two for each whose runner's pod is not in the list. */
export async function inspectJobObjects(
  listed: readonly OwnedObject[],
  pods: readonly OwnedObject[],
  compute: Compute,
  lives: RunnerWorkflows,
): Promise<JobObjectUse[]> {
  const known = new Set(pods.map(({ namespace, name }) => `${namespace}/${name}`));
  return await pMap(
    listed,
    async (object) =>
      known.has(`${object.namespace}/${object.runnerPod}`)
        ? { object, used: true }
        : await inspectJobObject(object, compute, lives),
    { concurrency: AT_ONCE },
  );
}

/** The same of one. */
export async function inspectJobObject(
  object: OwnedObject,
  compute: Compute,
  lives: RunnerWorkflows,
): Promise<JobObjectUse> {
  const { runnerPod: name = '', namespace } = object;
  // Not a name that we would have made, as those of another controller in this namespace.
  if (workflowIdInPodName(name) === undefined) return { object, used: false };
  if ((await compute.getPod({ name, namespace })) !== undefined) return { object, used: true };
  return {
    object: { ...object, ...omitUndefined({ identity: await lives.runnerOfPod(name) }) },
    used: false,
  };
}
