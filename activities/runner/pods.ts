/** What the workflows ask about pods. */
import { CompleteAsyncError, activityInfo } from '@temporalio/activity';
import type { AwaitPodInput, PodInput } from '../../core/activities/index.ts';
import type { PodRef, PodView, PodSnapshot } from '../../core/domain/pod.ts';
import { conditionMet } from '../../core/domain/podConditions.ts';
import { callingWorkflowId } from '../shared/callingWorkflow.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import type { ActivityPorts } from '../ports.ts';
import type { NotifySet } from '../runnerSet/runnerEventBatcher.ts';

/** Tries of a wait that tell what it begins with. */
const TELLING_TRIES = 3;

/**
 * Looks at the live state once; where the condition does not hold yet, gives its slot back: the watcher completes the activity
 * when it does (`startWatcher`). Its start-to-close timeout is the re-sync: the next attempt looks live again.
 */
export async function awaitPod(
  ports: ActivityPorts,
  tell: NotifySet,
  { notify, ...input }: AwaitPodInput,
): Promise<PodSnapshot> {
  // Not in each re-sync: a try or two may have died before Temporal had it, and after those the set's own list tells.
  const told =
    notify !== undefined && activityInfo().attempt <= TELLING_TRIES ? tell(notify) : undefined;
  const [looked] = await Promise.all([findPod(ports, input), told]);
  if (looked === undefined) throw new CompleteAsyncError();
  return looked;
}

/** @returns `undefined`: it is to be waited for */
async function findPod(
  ports: ActivityPorts,
  input: AwaitPodInput,
): Promise<PodSnapshot | undefined> {
  const pod =
    ports.compute.isReachable?.() === false
      ? lastSeen(ports, input)
      : await observePod(ports, input, false);
  return pod !== undefined && conditionMet(input.until, pod, Date.now()) ? pod : undefined;
}

/** While the API server is away a look tells nothing; what comes true tells the watch, as soon as it is back. What it has told it does not tell again. */
function lastSeen({ compute }: ActivityPorts, { pod }: PodInput): PodSnapshot | undefined {
  const seen = compute.getCachedPod?.({ ...pod, workflowId: callingWorkflowId() });
  return seen === 'deleted' ? deletedPod(pod) : seen && withoutWorkflowId(seen);
}

/** Looks at a pod before something is decided that cannot be taken back: a watch that is silent may be half-open, so no cache answers. */
export async function getPod(ports: ActivityPorts, input: PodInput): Promise<PodSnapshot> {
  return await observePod(ports, input, true);
}

async function observePod(
  { compute }: ActivityPorts,
  { pod }: PodInput,
  live: boolean,
): Promise<PodSnapshot> {
  return await withClusterErrors(`looking at ${pod.name}`, async () =>
    withoutWorkflowId(
      (await compute.getPod({ ...pod, workflowId: callingWorkflowId(), live })) ?? deletedPod(pod),
    ),
  );
}

/** Each life knows whose pod it looks at: histories need not say it again. */
export function withoutWorkflowId(pod: PodSnapshot): PodSnapshot {
  const { workflowId: _its, ...seen } = pod as PodView;
  return seen;
}

/** What is known of a pod that does not exist any more and that nobody saw go. */
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
