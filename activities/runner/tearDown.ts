/**
 * The one way out of what ran: its pod, its registration's Secret, its claims. Everybody who wants a pod gone comes here; the only other
 * place that deletes one is deleteCompletedPod.ts.
 */
import type { PodDeletion, TearDownInput } from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { completeOrDefer, type PodWaiter } from '../watcher/deferredCompletions.ts';
import { saveLogTail } from './saveLogTail.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import type { ActivityPorts } from '../ports.ts';
import type { NotifySet } from '../runnerSet/runnerEventBatcher.ts';

/** Deletes what the input names. What does not exist (any more) is as good as deleted; of a pod that is to be left alone, nothing is. */
export async function tearDown(
  ports: ActivityPorts,
  tell: NotifySet,
  { notify, ...input }: TearDownInput,
): Promise<PodDeletion | PodView> {
  if (notify === undefined) return await deleteAll(ports, input);
  const telling = notify.early ? tell(notify) : undefined;
  // Thrown below, where it is awaited: what is to go goes all the same.
  telling?.catch(() => undefined);
  const state = await deleteAll(ports, input);
  await (telling ?? (state === 'deleted' ? tell(notify) : undefined));
  return state;
}

async function deleteAll(
  ports: ActivityPorts,
  input: TearDownInput,
): Promise<PodDeletion | PodView> {
  const { compute, deferredCompletions } = ports;
  const { identity, namespace } = input;
  const { state, lookOut } = await withClusterErrors(
    `deleting what ran of ${compute.podName(identity)}`,
    async () => {
      const deleted = await deletePod(ports, input);
      if (isLeft(deleted.state)) return deleted;
      try {
        // Not before the pod: while its deletion is refused, a container that has not started yet needs its Secret.
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
  return await completeOrDefer(deferredCompletions, lookOut, (seen) =>
    seen?.deleted === true ? 'deleted' : state,
  );
}

const isLeft = (state: PodDeletion | PodView): state is PodView => typeof state === 'object';

async function deletePod(
  ports: ActivityPorts,
  { identity, namespace, pod: wanted }: TearDownInput,
): Promise<{ state: PodDeletion | PodView; lookOut?: PodWaiter }> {
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
  // From before the deletion: its end may be told of sooner than the request is answered.
  const lookOut =
    wanted.waitForDeletion === true ? deferredCompletions?.addWaiter(pod, 'deleted') : undefined;
  let state: PodDeletion | PodView = 'deleted';
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
