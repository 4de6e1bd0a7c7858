/** Tracks which pods may still write to a claim. Nothing mounts the claim meanwhile. */
import {
  FAILURE_TYPES,
  type ClaimsInput,
  type FenceClaimsInput,
} from '../../core/activities/index.ts';
import { applicationFailure } from '../shared/failures.ts';
import { withClusterErrors } from '../shared/clusterActivity.ts';
import { nonRetryableAfterDeadline } from '../shared/deadline.ts';
import type { ActivityPorts } from '../ports/activityPorts.ts';

/** Interval between two checks of the node of a writer (ms). */
const NODE_RECHECK_MS = 10_000;

/**
 * Records on the claims that a pod whose end was not observed may still write to them. The record
 * applies to every runner that mounts the claims later.
 */
export async function fenceClaims(
  { compute }: ActivityPorts,
  { identity, claims, namespace, writer }: FenceClaimsInput,
): Promise<void> {
  await withClusterErrors(
    `fencing the claims of ${compute.podName(identity)}`,
    async () => await compute.fenceClaims(identity, claims, writer, namespace),
  );
}

/**
 * Fails until no pod on a lost node can write to the claims any more. The retries of the activity
 * are the wait.
 * @throws ApplicationFailure `VolumeClaimFenced` while the node of a writer is unreachable
 */
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
