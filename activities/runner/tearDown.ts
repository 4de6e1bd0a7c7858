/**
 * Deletes the pod of a runner, the Secret of its registration, and its claims. Every deletion of a
 * pod uses this activity, except for deleteCompletedPod.ts.
 */
import type { PodDeletion, TearDownInput } from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { completeOrDefer, type PodWaiter } from '../watcher/deferredCompletions.ts';
import { forWorkflow } from './pods.ts';
import { saveLogTail } from './saveLogTail.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';
import type { NotifySet } from '../runnerSet/runnerEventBatcher.ts';

/**
 * Deletes the objects that the input names. An object that does not exist counts as deleted. If the
 * pod must be kept (`unlessStarted`, `unlessBusy`), the Secret and the claims are kept too.
 * @param notifySet - notifies the runner set
 * @returns the state of the deletion, or of the pod if it was kept
 */
export async function tearDown(
  ports: ActivityPorts,
  notifySet: NotifySet,
  { notify, ...input }: TearDownInput,
): Promise<PodDeletion | PodSnapshot> {
  if (notify === undefined) return await deleteAll(ports, input);
  const notifying = notify.early ? notifySet(notify) : undefined;
  // The error is thrown below, where the promise is awaited. The deletion continues in any case.
  notifying?.catch(() => undefined);
  const state = await deleteAll(ports, input);
  await (notifying ?? (state === 'deleted' ? notifySet(notify) : undefined));
  return state;
}

async function deleteAll(
  ports: ActivityPorts,
  input: TearDownInput,
): Promise<PodDeletion | PodSnapshot> {
  const { compute, deferredCompletions } = ports;
  const { identity, namespace } = input;
  const { state, lookOut } = await withClusterErrors(
    `deleting the objects of ${compute.podName(identity)}`,
    async () => {
      const deleted = await deletePod(ports, input);
      if (isLeft(deleted.state)) return { state: forWorkflow(deleted.state) };
      try {
        // Delete the Secret only after the pod: while the deletion of the pod is rejected, a
        // container that has not started yet needs its Secret.
        await Promise.all([
          input.secret === true ? compute.deleteRegistrationSecret(identity, namespace) : undefined,
          input.claims === undefined
            ? undefined
            : compute.deleteClaims(identity, input.claims, namespace),
        ]);
      } catch (error) {
        if (deleted.lookOut !== undefined) deferredCompletions?.forget(deleted.lookOut);
        throw error;
      }
      return deleted;
    },
  );
  return await completeOrDefer(
    deferredCompletions,
    lookOut,
    (seen) => (seen?.deleted === true ? 'deleted' : state),
    deferredCompletions?.limits.tearDownMs ?? 0,
  );
}

const isLeft = (state: PodDeletion | PodSnapshot): state is PodSnapshot =>
  typeof state === 'object';

async function deletePod(
  ports: ActivityPorts,
  { identity, namespace, pod: wanted }: TearDownInput,
): Promise<{ state: PodDeletion | PodSnapshot; lookOut?: PodWaiter }> {
  const { compute, deferredCompletions } = ports;
  if (wanted === undefined) return { state: 'deleted' };
  const { workflowId } = identity;
  const found =
    wanted.ref ??
    (await compute.getPod({
      name: compute.podName(identity),
      workflowId,
      ...omitUndefined({ namespace }),
    }));
  if (found === undefined) return { state: 'deleted' };
  const pod = { ...found, workflowId };
  const { gracePeriodSeconds, reason, stopReason, unlessStarted, unlessBusy } = wanted;
  if (wanted.saveLog === true) await saveLogTail(ports, pod);
  // Add the waiter before the deletion, because the watch may report the end of the pod before the
  // request is answered.
  const lookOut =
    wanted.waitForDeletion === true ? deferredCompletions?.addWaiter(pod, 'deleted') : undefined;
  let state: PodDeletion | PodSnapshot = 'deleted';
  try {
    state = await compute.deletePod(
      pod,
      omitUndefined({ gracePeriodSeconds, reason, stopReason, unlessStarted, unlessBusy }),
    );
  } finally {
    if (state !== 'terminating' && lookOut !== undefined) deferredCompletions?.forget(lookOut);
  }
  return state === 'terminating' ? { state, ...omitUndefined({ lookOut }) } : { state };
}
