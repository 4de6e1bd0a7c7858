/** Activities that wait for a pod or read its state. */
import { CompleteAsyncError, activityInfo } from '@temporalio/activity';
import type { AwaitPodInput, PodInput } from '../../core/activities/index.ts';
import type { PodRef, PodView, PodSnapshot } from '../../core/domain/pod.ts';
import { conditionMet, isBusy, isPersistentProblem } from '../../core/domain/podConditions.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { callingWorkflowId } from '../shared/callingWorkflow.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { NotifySet } from '../runnerSet/runnerEventBatcher.ts';

/** Number of attempts of a wait that also notify the set. */
const MAX_NOTIFY_ATTEMPTS = 3;

/**
 * Reads the live state of the pod once. If the condition does not hold yet, the activity completes
 * asynchronously: it frees its slot, and the watcher completes it when the condition holds
 * (`startWatcher`). Its start-to-close timeout is the resync interval: the next attempt reads the
 * live state again.
 */
export async function awaitPod(
  ports: ActivityPorts,
  notifySet: NotifySet,
  { notify, ...input }: AwaitPodInput,
): Promise<PodSnapshot> {
  // Not in every resync. An attempt or two may have died before Temporal received the event. After
  // those, the set learns it from its own list.
  const notification =
    notify !== undefined && activityInfo().attempt <= MAX_NOTIFY_ATTEMPTS
      ? notifySet(notify)
      : undefined;
  const [pod] = await Promise.all([findPod(ports, input), notification]);
  if (pod === undefined) throw new CompleteAsyncError();
  return pod;
}

/**
 * Returns the state of the pod if the condition holds, or `undefined` if the activity must wait.
 */
async function findPod(
  ports: ActivityPorts,
  input: AwaitPodInput,
): Promise<PodSnapshot | undefined> {
  const pod =
    ports.compute.isReachable?.() === false
      ? lastSeen(ports, input)
      : await observePod(ports, input, { live: false });
  return pod !== undefined && conditionMet(input.until, pod, Date.now()) ? pod : undefined;
}

/**
 * Returns the state of the pod as the watch last saw it. During an outage of the API server a live
 * read fails. When the API server is back, the watch reports what changed meanwhile, but does not
 * repeat what it has already reported.
 */
function lastSeen({ compute }: ActivityPorts, { pod }: PodInput): PodSnapshot | undefined {
  const seen = compute.getCachedPod?.({ ...pod, workflowId: callingWorkflowId() });
  return seen === 'deleted' ? deletedPod(pod) : seen && forWorkflow(seen);
}

/**
 * Returns the live state of a pod, for decisions that cannot be undone. The cache is not used,
 * because a silent watch may be half-open.
 */
export async function getPod(ports: ActivityPorts, input: PodInput): Promise<PodSnapshot> {
  return await observePod(ports, input, { live: true });
}

async function observePod(
  { compute }: ActivityPorts,
  { pod }: PodInput,
  { live }: { readonly live: boolean },
): Promise<PodSnapshot> {
  return await withClusterErrors(`looking at ${pod.name}`, async () =>
    forWorkflow(
      (await compute.getPod({ ...pod, workflowId: callingWorkflowId(), live })) ?? deletedPod(pod),
    ),
  );
}

/**
 * Converts a pod state for its workflow. What depends on the current time is decided here: the times
 * are those of this process's clock, and the clock of Temporal may differ by minutes. Without the
 * workflow ID, because each workflow knows which pod it reads.
 */
export function forWorkflow(pod: PodSnapshot, nowMs = Date.now()): PodSnapshot {
  const { workflowId: _its, problem, ...seen } = pod as PodView;
  return {
    ...seen,
    ...omitUndefined({ busy: isBusy(pod, nowMs) }),
    ...(problem === undefined
      ? {}
      : {
          problem: isPersistentProblem(problem, nowMs)
            ? { ...problem, persistent: true as const }
            : problem,
        }),
  };
}

/** Returns the state of a pod that does not exist any more and whose end was not observed. */
export function deletedPod(pod: PodRef): PodSnapshot {
  return {
    ...pod,
    scheduled: false,
    createdAt: new Date(0).toISOString(),
    ended: true,
    deleted: true,
    endUnobserved: true,
    terminating: false,
  };
}
