/**
 * Whether a runner that has ended could start, and whether its job or its command is complete.
 * Pure.
 */
import type { RunnerCause } from '../../core/contract/index.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import type { EndFacts } from './endFacts.ts';
import { hasLostJob } from './runnerLoss.ts';

/**
 * Returns the failure message of an init container that failed by itself and so ended the pod
 * before its runner started. This is a user error, not a loss.
 */
export function initFailureOf({ pod, started }: EndFacts): string | undefined {
  if (
    pod === undefined ||
    started ||
    !pod.ended ||
    pod.deleted ||
    pod.terminating ||
    pod.disruptionReason !== undefined
  )
    return undefined;
  return pod.problem?.kind === 'config' ? pod.problem.message : undefined;
}

/**
 * Whether the job of an ephemeral runner that exited with code 0 ran to its end. This needs a
 * proof.
 *
 * A runner that was asked to stop may exit with 0 without a job, so only an observed job counts.
 * Otherwise it had a job if one was observed, or if the CI server still calls it busy (the CI
 * server needs a moment to update).
 */
export function didItsJob(f: EndFacts, loss: RunnerCause | undefined): boolean {
  if (f.pod?.exit?.record?.job === 'none' || hasLostJob(f, loss)) return false;
  return f.hadJob || (loss === undefined && (f.removal === 'busy' || removedItself(f)));
}

/**
 * Whether the registration disappeared without any request of Holdfast. For a pod that does not
 * report its state, this is the only proof of a job. A runner that never came online leaves its
 * registration behind. A runner with a short job may end before any check of whether it is online.
 *
 * A runner may also exit with 0 after another party has removed its registration. Nothing
 * distinguishes that case.
 */
function removedItself({ pod, wasRegistered, removal }: EndFacts): boolean {
  return (
    pod?.online === undefined &&
    pod?.exit?.record === undefined &&
    wasRegistered &&
    removal === 'absent'
  );
}

/**
 * Whether the command ran to its end. A command that was asked to stop and exits with 0 may have
 * stopped halfway, so only the supervisor's record or the checkpoint policy can prove completion.
 */
export function isComplete({ pod, checkpoints }: EndFacts, loss: RunnerCause | undefined): boolean {
  const exit = pod?.exit;
  if (exit?.code !== 0) return false;
  if (checkpoints) return true;
  return exit.record === undefined ? loss === undefined : exit.record.reason === undefined;
}

/**
 * Returns the upload failure. An upload that was still running when its time was over or its pod
 * was deleted counts as failed.
 */
export function notStoredOf({ pod }: EndFacts): NonNullable<PodSnapshot['exit']>['uploadFailure'] {
  return (
    pod?.exit?.uploadFailure ??
    (pod?.uploadingUntil === undefined
      ? undefined
      : { by: 'store', why: 'the uploader did not end in time' })
  );
}
