import type { V1Pod, V1Status } from '@kubernetes/client-node';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import type { PodDeletion } from '../../../core/activities/index.ts';
import type { DeletionOptions } from '../../ports.ts';
import type { ApiServer } from './apiServer.ts';
import { isNotFound, isUidMismatch, toComputeError } from './errors.ts';
import { STOP_REASON_ANNOTATION, STOP_REQUESTED_AT_ANNOTATION } from './metadata.ts';
import { toPodView } from './podView.ts';
import { type PodRef, type StopReason, allowsJobToFinish } from '../../../core/domain/pod.ts';

/**
 * How long the kubelet is given to show a new annotation in the pod's downward API volume, in ms: it writes the volumes of a pod anew when
 * it hears of the change and has looked at its containers since the last time (every second), and never once the pod is terminating.
 * Seen on a node with ten processes waiting for each core: 2.2 s.
 */
const SHOWN_MS = 3_000;

/**
 * When an order is stated again, in ms after the time before: a supervisor that has not been shown it drains, and is killed at the end of a
 * grace without a drain. Most kubelets' pods are shown a change within a second; of 112, one was not within 15 s. Each further change makes
 * the kubelet write the volume anew.
 */
const RETRY_DELAYS_MS = [1_000, 2_000, 4_000, 8_000] as const;
/** The same where many wait for their kubelets, as when a zone is lost: each takes an activity's slot, and other runners' calls need some, too. */
const RETRY_DELAYS_AMONG_MANY_MS = RETRY_DELAYS_MS.slice(0, 2);
/** Half of the activities that a worker carries out at once by default. */
const MANY = 100;
/** In this process. */
let waiting = 0;

/** Not of node:timers/promises, whose timers a test cannot advance. */
async function delay(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Asks for the deletion of exactly this pod; its supervisor is told why beforehand, where that is asked for.
 * @param resourceVersion - the pod as it was read: one that has changed since is left alone
 * @returns `gone` also when there is another pod of that name
 * @throws ComputeError; `unavailable` also for one that has changed: then it is to be read again
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

/** Tells the supervisor why the pod will be stopped, where it can still read it, and gives it the time to: to one that is given an order, until its runner has ended. */
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

/** States the reason. @returns whether the runner may come to know: it has not ended, and its pod is not terminating */
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
 * A pod that goes at once (never scheduled, ended, or grace 0) is answered with the pod as it was last, its grace 0; a finalizer
 * keeps it nevertheless.
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
