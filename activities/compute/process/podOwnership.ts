/** Whose a pod's folder is. What a request says of it proves nothing, and its name becomes part of a path. */
import { ComputeError } from '../../ports.ts';
import type { OwnedPodRef } from '../../../core/domain/pod.ts';
import { readPod, type ProcessPodSpec, type StateDirectories } from './podDirectory.ts';

const POD_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** @throws ComputeError `invalid`: no pod has such a name, and a folder's path must not be made of it */
export function requirePodName(name: string): void {
  if (typeof name !== 'string' || !POD_NAME.test(name))
    throw new ComputeError(
      'invalid',
      `pod: "${String(name)}" must be the name of a pod: lower-case letters, digits and "-"`,
    );
}

/**
 * Whether the pod is the one that was asked for.
 * @throws ComputeError `foreign`: the pod of that UID is another runner's
 */
export function isPodOf(
  spec: ProcessPodSpec,
  { name, uid, workflowId }: Pick<OwnedPodRef, 'name'> & Partial<OwnedPodRef>,
): boolean {
  if (uid !== undefined && spec.uid !== uid) return false;
  if (workflowId === undefined || spec.workflowId === workflowId) return true;
  if (uid === undefined) return false;
  throw new ComputeError('foreign', `pod ${name} is not a pod of ${workflowId}: it is left alone`);
}

/**
 * Whether the pod of this UID is there.
 * @throws ComputeError `foreign`: it is another runner's; `invalid`: its name is none, or there is no UID
 */
export async function isOwnPod(folders: StateDirectories, pod: OwnedPodRef): Promise<boolean> {
  requirePodName(pod.name);
  if (pod.uid === '' || typeof pod.uid !== 'string')
    throw new ComputeError('invalid', `pod ${pod.name}: the UID is missing`);
  const found = await readPod(folders, pod.name);
  return found !== undefined && isPodOf(found.spec, pod);
}
