/** Keeps the last lines of a runner that did not succeed. Never in Temporal: a job's log may hold anything. */
import type { ActivityPorts } from '../ports.ts';
import type { OwnedPodRef } from '../../core/domain/pod.ts';

/** A log that takes longer to read must not hold up the end of a life, in ms. */
const TIMEOUT_MS = 5_000;

/** Reads the tail of the pod's log and hands it to the store. A log that cannot be had is noted there, and costs nothing else. */
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
