/** Deletes a pod only as it was read, if a condition on what was read holds. */
import { setTimeout as delay } from 'node:timers/promises';
import type { PodDeletion } from '../../../core/activities/index.ts';
import type { PodView } from '../../../core/domain/pod.ts';
import { isBusy } from '../../../core/domain/podConditions.ts';
import type { DeletionOptions } from '../../ports.ts';
import { isChanged } from './errors.ts';

/** How long a pod that changes between each read and its deletion is read again (ms): as long as an idle runner is watched for a job. */
const CHANGING_MS = 3_000;
/** Time to wait before a pod that has changed is read again (ms). */
const AGAIN_MS = 100;

/** A pod as the API server has it. */
export interface PodRead {
  readonly view: PodView;
  readonly resourceVersion: string | undefined;
}

/** Whether a pod that was read is to be left alone. One that is terminating already goes on. */
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
 * Reads the pod, and deletes it with the resource version that was read. One that has changed since is read and decided upon again.
 * @param read - the API server's own word, never a cache's
 * @param ask - asks for the deletion of that version
 * @returns how the pod looks, if it is left alone
 * @throws ComputeError; also the conflict, when it goes on changing for 3 s
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
