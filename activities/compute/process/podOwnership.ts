/**
 * Checks the owner of a pod's directory. The content of a request proves nothing, and the name of
 * the pod becomes part of a path.
 */
import { ComputeError } from '../../ports/computeError.ts';
import type { OwnedPodRef } from '../../../core/domain/pod.ts';
import { readPod, type ProcessPodSpec, type StateDirectories } from './podDirectory.ts';

const POD_NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Validates the name of a pod before it becomes part of a path.
 * @throws ComputeError `invalid` if no pod can have this name
 */
export function requirePodName(name: string): void {
  if (typeof name !== 'string' || !POD_NAME.test(name))
    throw new ComputeError(
      'invalid',
      `pod: "${String(name)}" must be the name of a pod: lower-case letters, digits and "-"`,
    );
}

/**
 * Returns whether the pod is the requested one.
 * @throws ComputeError `foreign` if the pod with this UID belongs to another runner
 */
export function isPodOf(
  spec: ProcessPodSpec,
  { name, uid, workflowId }: Pick<OwnedPodRef, 'name'> & Partial<OwnedPodRef>,
): boolean {
  if (uid !== undefined && spec.uid !== uid) return false;
  if (workflowId === undefined || spec.workflowId === workflowId) return true;
  if (uid === undefined) return false;
  throw new ComputeError('foreign', `pod ${name} is not a pod of ${workflowId}; it is kept`);
}

/**
 * Returns whether the pod with this UID exists.
 * @throws ComputeError `foreign` if it belongs to another runner; `invalid` if its name is invalid
 * or there is no UID
 */
export async function isOwnPod(folders: StateDirectories, pod: OwnedPodRef): Promise<boolean> {
  requirePodName(pod.name);
  if (pod.uid === '' || typeof pod.uid !== 'string')
    throw new ComputeError('invalid', `pod ${pod.name}: the UID is missing`);
  const found = await readPod(folders, pod.name);
  return found !== undefined && isPodOf(found.spec, pod);
}
