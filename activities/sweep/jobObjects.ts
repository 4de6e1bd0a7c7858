/**
 * Objects that jobs created in addition to runners' pods, as a sweep sees them; see
 * activities/compute/kubernetes/jobPodOwnership.ts.
 */
import pMap from 'p-map';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { JobObjectUse } from '../../core/sweep/decideSweep.ts';
import type { OwnedObject } from '../../core/sweep/ownedObject.ts';
import { workflowIdInPodName } from '../compute/naming.ts';
import type { Compute } from '../ports/compute.ts';
import type { RunnerWorkflows } from './runnerWorkflows.ts';

const AT_ONCE = 5;

/**
 * Returns for each object whether its runner's pod exists, and which runner of this installation it
 * belonged to. Each object whose runner's pod is not listed costs up to two requests.
 */
export async function inspectJobObjects(
  listed: readonly OwnedObject[],
  pods: readonly OwnedObject[],
  compute: Compute,
  workflows: RunnerWorkflows,
): Promise<JobObjectUse[]> {
  const known = new Set(pods.map(({ namespace, name }) => `${namespace}/${name}`));
  return await pMap(
    listed,
    async (object) =>
      known.has(`${object.namespace}/${object.runnerPod}`)
        ? { object, used: true }
        : await inspectJobObject(object, compute, workflows),
    { concurrency: AT_ONCE },
  );
}

/**
 * Returns whether the runner's pod of one object exists, and which runner the object belonged to.
 */
export async function inspectJobObject(
  object: OwnedObject,
  compute: Compute,
  workflows: RunnerWorkflows,
): Promise<JobObjectUse> {
  const { runnerPod: name = '', namespace } = object;
  // The name is not in the format of this installation. Another controller in this namespace may
  // have created the pod.
  if (workflowIdInPodName(name) === undefined) return { object, used: false };
  if ((await compute.getPod({ name, namespace })) !== undefined) return { object, used: true };
  return {
    object: { ...object, ...omitUndefined({ identity: await workflows.runnerOfPod(name) }) },
    used: false,
  };
}
