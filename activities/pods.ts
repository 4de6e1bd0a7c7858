import { CompleteAsyncError } from '@temporalio/activity';
import { toFailure } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';
import { isMet, type PodCondition } from '../workflows/podConditions.ts';
import type { ActivityPorts, PodRef, PodView, RunnerIdentity } from './ports.ts';

export interface PodInput {
  readonly workflowId: string;
  readonly pod: PodRef;
}

export interface AwaitPodInput extends PodInput {
  readonly until: PodCondition;
}

export interface StopPodInput extends PodInput {
  /** The pod's own grace when absent; 0 kills at once. */
  readonly gracePeriodSeconds?: number;
  readonly reason: string;
}

export interface TearDownInput {
  readonly identity: RunnerIdentity;
  readonly namespace?: string;
  /** Absent when provisioning never answered: the pod is then looked for by its deterministic name. */
  readonly pod?: PodRef;
  readonly gracePeriodSeconds?: number;
}

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

export async function stopPod({ compute }: ActivityPorts, input: StopPodInput): Promise<'gone' | 'terminating'> {
  const { gracePeriodSeconds, reason } = input;
  const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
  return await onCluster(`stopping ${input.pod.name}`, async () => await compute.deletePod(input.pod, { reason, ...grace }));
}

export async function tearDown({ compute }: ActivityPorts, input: TearDownInput): Promise<'gone' | 'terminating'> {
  const { identity, namespace, gracePeriodSeconds } = input;
  const name = compute.podName(identity);
  return await onCluster(`deleting ${name}`, async () => {
    const pod = input.pod ?? (await compute.observe(namespace === undefined ? { name } : { name, namespace }));
    const [state] = await Promise.all([
      pod === undefined ? ('gone' as const) : compute.deletePod(pod, gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      compute.deleteRegistration(identity, namespace),
    ]);
    return state;
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
