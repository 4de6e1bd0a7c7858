/**
 * EARLY DELETION: a pod whose job is done is deleted by the worker that saw its end, ahead of its workflow.
 *
 * What: when a runner for one job did it and ended by itself, and its workflow has taken note of that end, the watcher deletes the pod at
 * once. Its workflow would ask for the same next; it finds the pod gone, or going. This is the only place beside the workflow's own
 * requests (activities/runner/tearDown.ts) that deletes a pod.
 *
 * Why: what the pod takes of its node is free, and the next runner scheduled there, without the workflow task and the activity that lie
 * between the news and the tear-down, each of which queues behind those of all other runners when many end together. It costs no
 * request: the tear-down of the same worker is answered with what this deletion was answered (`AskedDeletions`).
 *
 * What holds if it fails: everything. The tear-down deletes the pod whether this has happened or not; a failure is logged and not tried
 * again. Nor can it delete too much: only the pod of this very UID, and only when its workflow holds its exit code and the supervisor's
 * record, so that no decision needs the pod any more (`isSpent`).
 */
import { isCompletedEphemeral } from '../../core/domain/podConditions.ts';
import type { PodView } from '../../core/domain/pod.ts';
import type { Compute, Logger } from '../ports.ts';

/** Deletes the pod if its job is done. Call it when the pod's workflow knows of its end; it never throws. */
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
      "could not delete a pod whose job is done ahead of its workflow's tear-down",
    );
  }
}
