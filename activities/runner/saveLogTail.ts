/**
 * Saves the last lines of the log of a runner that did not succeed. They are never stored in
 * Temporal, because the log of a job may contain anything.
 */
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { OwnedPodRef } from '../../core/domain/pod.ts';

/** Maximum time to read and store a log (ms), so that it does not delay the end of the runner. */
const TIMEOUT_MS = 5_000;

/**
 * Reads the tail of the pod's log and stores it. A failure is reported to the store and otherwise
 * ignored.
 */
export async function saveLogTail(
  { compute, podLogs }: ActivityPorts,
  pod: OwnedPodRef,
): Promise<void> {
  if (podLogs === undefined) return;
  const { workflowId } = pod;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
  });
  try {
    const text = await Promise.race([compute.tailLog(pod, podLogs.maxBytes), late]);
    if (text !== undefined && text !== '')
      await Promise.race([podLogs.keep({ pod: pod.name, workflowId }, text), late]);
  } catch (error) {
    podLogs.failed({ pod: pod.name, workflowId }, error);
  } finally {
    clearTimeout(timer);
  }
}
