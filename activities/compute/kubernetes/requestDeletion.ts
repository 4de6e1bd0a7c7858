import type { V1Pod, V1Status } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodDeletion } from '../../../core/activities/index.ts';
import type { DeletionOptions } from '../../ports/compute.ts';
import type { ApiServer } from './apiServer.ts';
import { isNotFound, isUidMismatch, toComputeError } from './errors.ts';
import { STOP_REASON_ANNOTATION, STOP_REQUESTED_AT_ANNOTATION } from './metadata.ts';
import { toPodView } from './podView.ts';
import { type PodRef, type StopReason, allowsJobToFinish } from '../../../core/domain/pod.ts';

/**
 * Time given to the kubelet to show a new annotation in the pod's downward API volume (ms). It
 * updates the volumes of a pod when it learns of the change and has synced its containers since the
 * last time (every second). It never does so after the pod has started terminating. Measured on a
 * node with ten processes waiting per core: 2.2 s.
 */
const SHOWN_MS = 3_000;

/**
 * Times to wait before each repetition of a stop order (ms). A supervisor that has not seen the
 * order drains, and is killed at the end of a grace period without a drain. Most pods see a change
 * within a second; of 112, one did not within 15 s. Each further change makes the kubelet update
 * the volume again.
 */
const RETRY_DELAYS_MS = [1_000, 2_000, 4_000, 8_000] as const;
/**
 * Times to wait if many deletions wait for their kubelets, as after the loss of a zone. Each
 * occupies an activity slot, and calls of other runners need slots too.
 */
const RETRY_DELAYS_AMONG_MANY_MS = RETRY_DELAYS_MS.slice(0, 2);
/** Half of the default maximum of concurrent activities of a worker. */
const MANY = 100;
/** Number of waiting deletions in this process. */
let waiting = 0;

/** Waits. It does not use node:timers/promises, whose timers a test cannot advance. */
async function delay(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Requests the deletion of exactly this pod. With a stop reason, its supervisor gets the reason
 * first.
 * @param resourceVersion - version of the pod that was read. If the pod has changed since, it is
 * not deleted
 * @returns `deleted` also if another pod has the name
 * @throws ComputeError, `unavailable` also for a pod that has changed and must be read again
 */
export async function requestDeletion(
  api: ApiServer,
  podPath: string,
  { name, uid }: PodRef,
  { gracePeriodSeconds, stopReason: announced }: DeletionOptions,
  resourceVersion?: string,
): Promise<PodDeletion> {
  if (announced !== undefined) await deliverStopReason(api, podPath, { name, uid }, announced);
  const body = omitUndefined({
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: omitUndefined({ uid, resourceVersion }),
    gracePeriodSeconds,
  });
  try {
    const answer = await api.call<V1Pod | V1Status>({
      verb: 'delete',
      resource: 'pods',
      path: podPath,
      body,
    });
    return isTerminating(answer) ? 'terminating' : 'deleted';
  } catch (error) {
    if (isNotFound(error, name) || isUidMismatch(error)) return 'deleted';
    throw toComputeError(error, `delete pod ${name}`);
  }
}

/**
 * Gives the reason of the stop to the supervisor and waits until the supervisor can read it. A stop
 * order is repeated until the runner has ended.
 */
async function deliverStopReason(
  api: ApiServer,
  podPath: string,
  pod: PodRef,
  reason: StopReason,
): Promise<void> {
  if (!(await annotateStopReason(api, podPath, pod, reason))) return;
  if (allowsJobToFinish(reason)) return await delay(SHOWN_MS);
  const pauses = waiting < MANY ? RETRY_DELAYS_MS : RETRY_DELAYS_AMONG_MANY_MS;
  waiting++;
  try {
    for (const ms of pauses) {
      await delay(ms);
      if (!(await annotateStopReason(api, podPath, pod, reason))) return;
    }
  } finally {
    waiting--;
  }
}

/**
 * Writes the reason to the pod.
 * @returns whether the supervisor can still learn it: the runner has not ended, and the pod is not
 * terminating
 */
async function annotateStopReason(
  api: ApiServer,
  podPath: string,
  { name, uid }: PodRef,
  reason: StopReason,
): Promise<boolean> {
  const now = new Date().toISOString();
  const body = {
    metadata: {
      uid,
      annotations: { [STOP_REASON_ANNOTATION]: reason, [STOP_REQUESTED_AT_ANNOTATION]: now },
    },
  };
  try {
    const { ended, exit, terminating } = toPodView(
      await api.call<V1Pod>({ verb: 'patch', resource: 'pods', path: podPath, body }),
      now,
    );
    return !ended && exit === undefined && !terminating;
  } catch (error) {
    if (isNotFound(error, name) || isUidMismatch(error)) return false;
    throw toComputeError(error, `annotate pod ${name}`);
  }
}

/**
 * Returns whether the pod is still terminating. The response for a pod that is deleted immediately
 * (never scheduled, ended, or grace period 0) is its last state with grace period 0, but a
 * finalizer keeps the pod.
 */
function isTerminating(answer: V1Pod | V1Status): boolean {
  if (answer.kind !== 'Pod') return false;
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } =
    (answer as V1Pod).metadata ?? {};
  return (
    deletionTimestamp !== undefined &&
    (deletionGracePeriodSeconds !== 0 || (finalizers?.length ?? 0) > 0)
  );
}
