/** What the workflows ask about pods and nodes. */
import { CompleteAsyncError } from '@temporalio/activity';
import { FAILURE_TYPES, type AwaitPodInput, type PodInput } from '../core/calls/index.ts';
import type { PodRef, PodView } from '../core/domain/pod.ts';
import { isMet } from '../core/domain/podConditions.ts';
import { failure } from './failures.ts';
import { onCluster } from './onCluster.ts';
import type { ActivityPorts } from './ports.ts';

const NODE_RECHECK_MS = 10_000;

/**
 * Looks at the live state once; where the condition does not hold yet, gives its slot back: the watcher completes the activity
 * when it does (`startWatcher`). Its start-to-close timeout is the re-sync: the next attempt looks live again.
 */
export async function awaitPod(ports: ActivityPorts, input: AwaitPodInput): Promise<PodView> {
  const pod = await observePod(ports, input);
  if (isMet(input.until, pod, Date.now())) return pod;
  throw new CompleteAsyncError();
}

export async function observePod({ compute }: ActivityPorts, { pod, workflowId }: PodInput): Promise<PodView> {
  return await onCluster(`looking at ${pod.name}`, async () => (await compute.observe(pod)) ?? gonePod(pod, workflowId));
}

/** Fails until nothing can write any more from the node that was lost: the retries are the waiting. */
export async function awaitNodeReleased({ compute }: ActivityPorts, { node }: { readonly node: string }): Promise<void> {
  const state = await onCluster(`looking at node ${node}`, async () => await compute.nodeState(node));
  if (state !== 'unreachable') return;
  throw failure(`node ${node} does not answer: its pods may still write to the claim; it has to be Ready again, gone, or tainted out-of-service`, FAILURE_TYPES.nodeNotReleased, { nextRetryDelayMs: NODE_RECHECK_MS, expected: true });
}

/** What is known of a pod that does not exist any more and that nobody saw go. */
export function gonePod(pod: PodRef, workflowId: string): PodView {
  return { ...pod, workflowId, scheduled: false, createdAt: new Date(0).toISOString(), ended: true, gone: true, terminating: false };
}
