/**
 * Early deletion: the worker that saw the end of a completed runner deletes its pod before the
 * workflow requests it.
 *
 * When a single-use runner has run its job and exited by itself, and its workflow has recorded
 * that, the watcher deletes the pod immediately. The workflow would request the same deletion next,
 * and finds the pod deleted or terminating. In addition to the requests of the workflow itself
 * (activities/runner/tearDown.ts), this is the only place that deletes a pod.
 *
 * Reason: the resources of the pod on its node are freed, and the next runner is scheduled there,
 * without waiting for a workflow task and an activity task. Each of these queues behind those of
 * all other runners when many end together. It costs no additional request: the tear-down on the
 * same worker reuses the response to this deletion (`PendingDeletions`).
 *
 * A failure is harmless: the tear-down deletes the pod in any case. The failure is logged and not
 * retried. It cannot delete a wrong pod: it deletes only the pod with this UID, and only when its
 * workflow has the exit code and the supervisor's record. Then no decision needs the pod any more
 * (`isCompletedEphemeral`).
 */
import { isCompletedEphemeral } from '../../core/domain/podConditions.ts';
import type { PodView } from '../../core/domain/pod.ts';
import type { Compute } from '../ports/compute.ts';
import type { Logger } from '../ports/logger.ts';

/**
 * Deletes the pod if its job is complete. Call it after the workflow of the pod knows that the pod
 * has ended. Never throws.
 */
export async function deleteCompletedPod(
  compute: Compute,
  logger: Logger,
  pod: PodView,
): Promise<void> {
  if (!isCompletedEphemeral(pod)) return;
  try {
    await compute.deletePod(pod, { reason: 'its job is done, and its workflow knows' });
  } catch (error) {
    logger.warn(
      { err: error, pod: pod.name },
      'failed to delete the pod of a completed job early; the tear-down deletes it',
    );
  }
}
