/** The fence around a life's claims: nobody mounts one while a runner that nobody saw end may still write to it, whichever life that was. */
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { callUnless, clusterActivities } from '../shared/activityProxies.ts';
import type { RunnerState } from './state.ts';

/** A claim that is not free by then is told in the details, in ms. */
const FIRST_TRY_TIMEOUT_MS = 10_000;

/** Waits until the claims are free. Interrupted by a cancel. @returns why they are not, when their time is out */
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
          summary: 'check that nothing writes to the claims',
          withinMs,
        }).awaitClaims(input),
    );
    if (called.kind !== 'failed') return undefined;
    reason = called.message;
    state.setWaitReason(`claims: ${reason}`, Date.now() + spec.timeouts.provisioningMs);
  }
  return reason;
}

/** Fences the claims of a runner that is gone, and that nobody saw end: its node may be cut off, and go on. */
export async function fenceClaims({ runner, spec }: RunnerState): Promise<void> {
  const { pod, identity } = runner;
  const { volumeClaims: claims, namespace } = spec.pod;
  if (pod?.node === undefined || pod.exit !== undefined || claims.length === 0) return;
  await clusterActivities({ summary: 'fence the claims' }).fenceClaims({
    location: spec.location,
    identity,
    claims,
    writer: { node: pod.node, podUid: pod.uid },
    ...omitUndefined({ namespace }),
  });
}
