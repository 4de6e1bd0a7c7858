/** Between a runner that was lost and the one that takes its place. */
import { condition } from '@temporalio/workflow';
import { formatDuration } from '../../core/domain/duration.ts';
import { callUnless, clusterCalls } from '../calls.ts';
import type { RunnerLife } from './life.ts';
import type { EndDecision } from './verdict.ts';

/** Waits, and makes room for the next runner. A cancel that comes meanwhile leaves the life without one. */
export async function replaceRunner(life: RunnerLife, { cause, afterMs, message }: Extract<EndDecision, { kind: 'replace' }>): Promise<void> {
  const lost = life.runnerName;
  life.waitFor(message, Date.now() + afterMs);
  if (afterMs > 0) await condition(() => life.cancel !== undefined, afterMs, { summary: `${formatDuration(afterMs)} before another runner takes its place` });
  await awaitClaims(life);
  if (life.cancel !== undefined) return;
  life.replaceRunner();
  life.replaced.push({ runnerName: lost, cause, replacedBy: '' });
}

/** Nobody mounts a claim while a runner that nobody saw end may still write to it. */
async function awaitClaims(life: RunnerLife): Promise<void> {
  const { pod } = life.runner;
  const node = pod?.exit === undefined && pod?.startedAt !== undefined ? pod.node : undefined;
  if (node === undefined || life.spec.pod.volumeClaims.length === 0) return;
  life.waitFor(`node ${node} to be Ready again, gone, or tainted out-of-service, before its claims are mounted elsewhere`);
  await callUnless(
    () => life.cancel !== undefined,
    async () => await clusterCalls({ summary: `nothing writes from node ${node} any more?` }).awaitNodeReleased({ node }),
  );
}
