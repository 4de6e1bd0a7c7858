import { isBusy } from '../../../core/domain/podConditions.ts';
import { join } from 'node:path';
import type { PodDeletion } from '../../../core/activities/index.ts';
import type { DeletionOptions } from '../../ports/compute.ts';
import { createFile, hasCode, replaceFile } from './atomicFile.ts';
import type { ObservePods } from './observePods.ts';
import {
  POD_FILE,
  readPod,
  removePod,
  touchPodsDirectory,
  type PodOwner,
  type StateDirectories,
} from './podDirectory.ts';
import { signalProcess } from './processIdentity.ts';
import { mergeStopRequest } from './stopRequest.ts';
import { toPodView } from './podView.ts';
import type { PodRef, PodView } from '../../../core/domain/pod.ts';

/**
 * Removes a pod that has ended or was never started. If the runner is running, requests its stop;
 * its wrapper removes the pod afterwards.
 */
export async function deletePod(
  folders: StateDirectories,
  observe: ObservePods,
  pod: PodRef,
  options: DeletionOptions,
): Promise<PodDeletion | PodView> {
  try {
    return await removeOrStop(folders, observe, pod, options);
  } catch (error) {
    // Another process removed the directory between two steps.
    if (hasCode(error, 'ENOENT') && (await readPod(folders, pod.name))?.spec.uid !== pod.uid)
      return 'deleted';
    throw error;
  }
}

async function removeOrStop(
  folders: StateDirectories,
  observe: ObservePods,
  { name, uid }: PodRef,
  { gracePeriodSeconds, reason, unlessStarted, unlessBusy }: DeletionOptions,
): Promise<PodDeletion | PodView> {
  const found = (await observe([name])).get(name);
  if (found?.spec.uid !== uid) return 'deleted';
  if (unlessStarted === true && found.started !== undefined && found.stop === undefined)
    return toPodView(found);
  if (unlessBusy === true && found.stop === undefined) {
    const view = toPodView(found);
    if (view.ended || isBusy(view, Date.now()) === true) return view;
  }
  const folder = join(folders.pods, name);
  const remove = async (): Promise<'deleted'> => {
    await removePod(folders, name, uid);
    return 'deleted';
  };
  if (found.exit !== undefined) return await remove();
  if (found.owner === undefined) {
    // Become the owner in place of the wrapper, so that a wrapper that is just starting cannot
    // start the runner.
    const noOwner: PodOwner = {};
    if (await createFile(join(folder, POD_FILE.owner), JSON.stringify(noOwner)))
      return await remove();
  }
  const stop = mergeStopRequest(
    found.stop,
    gracePeriodSeconds ?? found.spec.terminationGracePeriodSeconds,
    reason,
    Date.now(),
  );
  if (stop !== undefined) {
    await replaceFile(join(folder, POD_FILE.stopRequest), JSON.stringify(stop));
    await touchPodsDirectory(folder);
  }
  const now = await readPod(folders, name);
  if (now?.spec.uid !== uid) return 'deleted';
  // The runner ended just now, and its wrapper may not have seen the stop request.
  if (now.exit !== undefined) return await remove();
  if (stop !== undefined && now.owner?.wrapper !== undefined)
    await signalProcess(now.owner.wrapper, 'SIGTERM');
  return 'terminating';
}
