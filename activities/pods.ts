import { CompleteAsyncError } from '@temporalio/activity';
import { failure, toFailure } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';
import { keepLog } from './keepLog.ts';
import { isMet } from '../core/domain/podConditions.ts';
import { answerSoon, type LookOut } from './heldBackAnswers.ts';
import type { ActivityPorts } from './ports.ts';
import { FAILURE_TYPES, type PodInput, type AwaitPodInput, type StopPodInput, type TearDownInput, type DeleteClaimsInput } from '../core/calls/index.ts';
import type { PodRef, PodView } from '../core/domain/pod.ts';

/** What a deletion has come to. */
export interface TakenDown {
  readonly state: 'gone' | 'terminating';
  /** For the end of a pod that is terminating. */
  readonly lookOut?: LookOut;
}

const NODE_RECHECK_MS = 10_000;

/** The pace of compute failures has no credential in it. */
const NO_CREDENTIALS = { credentialsRetryMs: 60_000 };

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

export async function stopPod(ports: ActivityPorts, input: StopPodInput): Promise<'gone' | 'terminating'> {
  const { gracePeriodSeconds, reason, announce } = input;
  const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
  return await onCluster(`stopping ${input.pod.name}`, async () => {
    if (input.keepLog === true) await keepLog(ports, input.pod, input.workflowId);
    return await ports.compute.deletePod(input.pod, { reason, ...grace, ...(announce === undefined ? {} : { announce }) });
  });
}

/** Deletes the claims that are the life's own: at its very end, after its last attempt. */
export async function deleteClaims({ compute }: ActivityPorts, { identity, claims, namespace }: DeleteClaimsInput): Promise<void> {
  await onCluster(`deleting the claims of ${compute.podName(identity)}`, async () => await compute.deleteClaims(identity, claims, namespace));
}

/** Fails until nothing can write any more from the node that was lost: the retries are the waiting. */
export async function awaitNodeReleased({ compute }: ActivityPorts, { node }: { readonly node: string }): Promise<void> {
  const state = await onCluster(`looking at node ${node}`, async () => await compute.nodeState(node));
  if (state !== 'unreachable') return;
  throw failure(`node ${node} does not answer: its pods may still write to the claim; it has to be Ready again, gone, or tainted out-of-service`, FAILURE_TYPES.nodeNotReleased, { nextRetryDelayMs: NODE_RECHECK_MS, expected: true });
}

export async function tearDown(ports: ActivityPorts, input: TearDownInput): Promise<'gone' | 'terminating'> {
  const takenDown = await takeDown(ports, input);
  return await answerSoon(ports.shortWaits, takenDown.lookOut, (pod) => stateAfter(takenDown, pod), input.goneWithinMs);
}

/** How the pod is by now. @param seen - as it was last seen since the deletion */
export function stateAfter({ state }: TakenDown, seen: PodView | undefined): TakenDown['state'] {
  return seen?.gone === true ? 'gone' : state;
}

/** Deletes the pod and the Secret. */
export async function takeDown(ports: ActivityPorts, input: TearDownInput): Promise<TakenDown> {
  const { compute, shortWaits } = ports;
  const { identity, namespace, gracePeriodSeconds } = input;
  const name = compute.podName(identity);
  return await onCluster(`deleting ${name}`, async () => {
    const pod = input.pod ?? (await compute.observe(namespace === undefined ? { name } : { name, namespace }));
    if (input.keepLog === true && pod !== undefined) await keepLog(ports, pod, identity.workflowId);
    // From before the deletion: its end may be told of sooner than the request is answered.
    const lookOut = pod === undefined ? undefined : shortWaits?.lookOut(pod, 'gone');
    let state: TakenDown['state'] = 'gone';
    try {
      [state] = await Promise.all([
        pod === undefined ? ('gone' as const) : compute.deletePod(pod, gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
        compute.deleteRegistrationSecret(identity, namespace),
      ]);
    } finally {
      if (state === 'gone' && lookOut !== undefined) shortWaits?.forget(lookOut);
    }
    return state === 'gone' || lookOut === undefined ? { state } : { state, lookOut };
  });
}

async function onCluster<T>(details: string, run: () => Promise<T>): Promise<T> {
  try {
    return await withHeartbeats(details, run);
  } catch (error) {
    throw toFailure(error, NO_CREDENTIALS, false);
  }
}

/** What is known of a pod that does not exist any more and that nobody saw go. */
export function gonePod(pod: PodRef, workflowId: string): PodView {
  return { ...pod, workflowId, scheduled: false, createdAt: new Date(0).toISOString(), ended: true, gone: true, terminating: false };
}
