/** Deletes a pod only in the state that was read, if a condition on this state holds. */
import { setTimeout as delay } from 'node:timers/promises';
import type { PodDeletion } from '../../../core/activities/index.ts';
import type { PodView } from '../../../core/domain/pod.ts';
import { isBusy } from '../../../core/domain/podConditions.ts';
import type { DeletionOptions } from '../../ports/compute.ts';
import { isChanged } from './errors.ts';

/**
 * Maximum time for which a pod that changes between each read and its deletion is read again (ms).
 * It is as long as an idle runner is watched for a job.
 */
const CHANGING_MS = 3_000;
/** Time to wait before a pod that has changed is read again (ms). */
const AGAIN_MS = 100;

/** State of a pod from a live read. */
export interface PodRead {
  readonly view: PodView;
  readonly resourceVersion: string | undefined;
}

/** Returns whether the pod must be kept. A pod that is already terminating keeps terminating. */
export function isLeftAlone(
  view: PodView,
  { unlessStarted, unlessBusy }: DeletionOptions,
  nowMs: number,
): boolean {
  if (view.terminating) return false;
  if (unlessStarted === true && view.startedAt !== undefined) return true;
  return unlessBusy === true && (view.ended || isBusy(view, nowMs) === true);
}

/**
 * Reads the pod and deletes it with the resource version that was read. If it has changed since, it
 * is read and checked again.
 * @param read - live read, never from a cache
 * @param ask - requests the deletion of that version
 * @returns the state of the pod if it is kept
 * @throws ComputeError, also for the conflict if the pod keeps changing for 3 s
 */
export async function deleteUnchanged(
  read: () => Promise<PodRead | undefined>,
  ask: (resourceVersion: string | undefined) => Promise<PodDeletion>,
  options: DeletionOptions,
): Promise<PodDeletion | PodView> {
  const untilMs = Date.now() + CHANGING_MS;
  for (;;) {
    const live = await read();
    if (live === undefined) return 'deleted';
    if (isLeftAlone(live.view, options, Date.now())) return live.view;
    try {
      return await ask(live.resourceVersion);
    } catch (error) {
      if (!isChanged(error) || Date.now() >= untilMs) throw error;
    }
    await delay(AGAIN_MS);
  }
}
