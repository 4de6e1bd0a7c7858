/** What the workflows ask about pods. */
import { CompleteAsyncError } from '@temporalio/activity';
import type { AwaitPodInput, PodInput } from '../core/calls/index.ts';
import type { PodRef, PodView } from '../core/domain/pod.ts';
import { isMet } from '../core/domain/podConditions.ts';
import { onCluster } from './onCluster.ts';
import type { ActivityPorts } from './ports.ts';

/**
 * Looks at the live state once; where the condition does not hold yet, gives its slot back: the watcher completes the activity
 * when it does (`startWatcher`). Its start-to-close timeout is the re-sync: the next attempt looks live again.
 */
export async function awaitPod(ports: ActivityPorts, input: AwaitPodInput): Promise<PodView> {
  // While the API server is away a look tells nothing; what comes true tells the watch, as soon as it is back.
  if (ports.compute.reachable?.() === false) throw new CompleteAsyncError();
  const pod = await observePod(ports, input);
  if (isMet(input.until, pod, Date.now())) return pod;
  throw new CompleteAsyncError();
}

export async function observePod({ compute }: ActivityPorts, { pod, workflowId }: PodInput): Promise<PodView> {
  return await onCluster(`looking at ${pod.name}`, async () => (await compute.observe(pod)) ?? gonePod(pod, workflowId));
}

/** What is known of a pod that does not exist any more and that nobody saw go. */
export function gonePod(pod: PodRef, workflowId: string): PodView {
  return { ...pod, workflowId, scheduled: false, createdAt: new Date(0).toISOString(), ended: true, gone: true, unseenEnd: true, terminating: false };
}
