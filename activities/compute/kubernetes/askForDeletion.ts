import { setTimeout as delay } from 'node:timers/promises';
import type { V1Pod, V1Status } from '@kubernetes/client-node';
import { defined } from '../../../core/defined.ts';
import type { PodDeletion } from '../../../core/calls/index.ts';
import type { DeletionOptions } from '../../ports.ts';
import type { ApiServer } from './apiServer.ts';
import { apiFailure, isAbsence, isOtherUid, toComputeError } from './errors.ts';
import { STOP_REASON_ANNOTATION } from './metadata.ts';
import type { PodRef } from '../../../core/domain/pod.ts';

/**
 * How long the kubelet is given to show a new annotation in the pod's downward API volume, in ms: it writes the volumes of a pod anew when
 * it hears of the change and has looked at its containers since the last time (every second), and never once the pod is terminating.
 * Seen on a node with ten processes waiting for each core: 2.2 s.
 */
export const ANNOUNCEMENT_MS = 3_000;

/**
 * Asks for the deletion of exactly this pod; its supervisor is told why beforehand, where that is asked for.
 * @param resourceVersion - the pod as it was read: one that has changed since is left alone
 * @returns `gone` also when there is another pod of that name
 * @throws ComputeError; `unavailable` also for one that has changed: then it is to be read again
 */
export async function askForDeletion(api: ApiServer, podPath: string, { name, uid }: PodRef, { gracePeriodSeconds, announce: announced }: DeletionOptions, resourceVersion?: string): Promise<PodDeletion> {
  if (announced !== undefined) await announce(api, podPath, { name, uid }, announced);
  const body = defined({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: defined({ uid, resourceVersion }), gracePeriodSeconds });
  try {
    const answer = await api.call<V1Pod | V1Status>({ verb: 'delete', resource: 'pods', path: podPath, body });
    return isTerminating(answer) ? 'terminating' : 'gone';
  } catch (error) {
    if (isAbsence(error, name) || isOtherUid(error)) return 'gone';
    throw toComputeError(error, `delete pod ${name}`);
  }
}

/** Tells the supervisor why the pod will be stopped, where it can still read it. */
async function announce(api: ApiServer, podPath: string, { name, uid }: PodRef, reason: string): Promise<void> {
  const body = { metadata: { uid, annotations: { [STOP_REASON_ANNOTATION]: reason } } };
  try {
    await api.call({ verb: 'patch', resource: 'pods', path: podPath, body });
  } catch (error) {
    const failure = apiFailure(error);
    // Gone already, or another UID, which the API server takes for the attempt to change it.
    if (isAbsence(error, name) || (failure?.own === true && failure.status === 422 && failure.message.includes('metadata.uid'))) return;
    throw toComputeError(error, `annotate pod ${name}`);
  }
  await delay(ANNOUNCEMENT_MS);
}

/**
 * A pod that goes at once (never scheduled, ended, or grace 0) is answered with the pod as it was last, its grace 0; a finalizer
 * keeps it nevertheless.
 */
function isTerminating(answer: V1Pod | V1Status): boolean {
  if (answer.kind !== 'Pod') return false;
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = (answer as V1Pod).metadata ?? {};
  return deletionTimestamp !== undefined && (deletionGracePeriodSeconds !== 0 || (finalizers?.length ?? 0) > 0);
}
