/** Who may still write to a claim: nobody mounts it meanwhile. */
import {
  FAILURE_TYPES,
  type ClaimsInput,
  type FenceClaimsInput,
} from '../../core/activities/index.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import { nonRetryableAfterDeadline } from '../shared/deadline.ts';
import type { ActivityPorts } from '../ports.ts';

const NODE_RECHECK_MS = 10_000;

/** Notes on the claims that a pod which nobody saw end may still write to them, for whichever life mounts them next. */
export async function fenceClaims(
  { compute }: ActivityPorts,
  { identity, claims, namespace, writer }: FenceClaimsInput,
): Promise<void> {
  await withClusterErrors(
    `fencing the claims of ${compute.podName(identity)}`,
    async () => await compute.fenceClaims(identity, claims, writer, namespace),
  );
}

/** Fails until nothing can write to the claims any more from a node that was lost: the retries are the waiting. */
export async function awaitClaims(
  { compute }: ActivityPorts,
  { identity, claims, namespace }: ClaimsInput,
): Promise<void> {
  const held = await withClusterErrors(
    `looking at the claims of ${compute.podName(identity)}`,
    async () => {
      const writers = await compute.claimWriters(identity, claims, namespace);
      for (const writer of writers) {
        if ((await compute.nodeState(writer.node)) === 'unreachable') return writer;
        await compute.releaseClaims(identity, claims, writer, namespace);
      }
      return undefined;
    },
  );
  if (held === undefined) return;
  const message = `node ${held.node} does not answer: pod ${held.podUid} may still write to a claim from there; the node has to be Ready again, gone, or tainted out-of-service`;
  throw nonRetryableAfterDeadline(
    applicationFailure(message, FAILURE_TYPES.volumeClaimFenced, {
      nextRetryDelayMs: NODE_RECHECK_MS,
      expected: true,
    }),
  );
}
