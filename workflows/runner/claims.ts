/**
 * Fences the claims of a runner workflow. A claim is not mounted while a runner whose end was not
 * observed may still write to it, whichever workflow that runner belongs to.
 */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { callUnless, clusterActivities } from '../shared/activityProxies.ts';
import type { RunnerState } from './state.ts';

/** Time after which a claim that is not free is shown in the details (ms). */
const FIRST_TRY_TIMEOUT_MS = 10_000;

/**
 * Waits until the claims are free. Interrupted by a cancel.
 *
 * @returns the reason why they are not free, if the timeout expired
 */
export async function awaitClaims(state: RunnerState): Promise<string | undefined> {
  const { spec, runner } = state;
  const { volumeClaims: claims, namespace } = spec.pod;
  if (claims.length === 0) return undefined;
  const input = {
    location: spec.location,
    identity: runner.identity,
    claims,
    ...omitUndefined({ namespace }),
  };
  let reason: string | undefined;
  for (const withinMs of [FIRST_TRY_TIMEOUT_MS, spec.timeouts.provisioningMs]) {
    const called = await callUnless(
      () => state.cancel !== undefined,
      async () =>
        await clusterActivities({
          summary: 'Check that nothing writes to the claims',
          withinMs,
        }).awaitClaims(input),
    );
    if (called.kind !== 'failed') return undefined;
    reason = called.message;
    state.setWaitReason(`claims: ${reason}`, Date.now() + spec.timeouts.provisioningMs);
  }
  return reason;
}

/**
 * Fences the claims of a runner whose pod no longer exists and whose end was not observed. Its node
 * may be disconnected from the cluster and continue to run it.
 */
export async function fenceClaims({ runner, spec }: RunnerState): Promise<void> {
  const { pod, identity } = runner;
  const { volumeClaims: claims, namespace } = spec.pod;
  if (pod?.node === undefined || pod.exit !== undefined || claims.length === 0) return;
  await clusterActivities({ summary: 'Fence the claims' }).fenceClaims({
    location: spec.location,
    identity,
    claims,
    writer: { node: pod.node, podUid: pod.uid },
    ...omitUndefined({ namespace }),
  });
}
