/** The end of a runner's pod and Secret. */
import { clusterCalls, settle, shortCalls } from '../calls.ts';
import { awaitPod, podRef } from './comeUp.ts';
import { TERMINATION_OVERDUE_MS, isSpent } from '../../core/domain/podConditions.ts';
import type { RunnerLife } from './life.ts';

/** Queries and updates wait while a workflow task does. */
const SOON_MS = 2_000;
/** How long the answer "deleted" may wait for "gone". */
const HELD_BACK_MS = 5_000;

/** What is to be deleted. The log's tail is kept of a runner that may not have succeeded. */
export function tearDownInput({ runner, spec, cancel }: RunnerLife) {
  const place = spec.pod.namespace === undefined ? {} : { namespace: spec.pod.namespace };
  const { pod } = runner;
  const keepLog = pod?.startedAt !== undefined && !pod.gone && (pod.exit?.code !== 0 || cancel !== undefined);
  return { identity: runner.identity, ...place, ...(pod === undefined ? {} : { pod: podRef(pod) }), ...(keepLog ? { keepLog } : {}), goneWithinMs: HELD_BACK_MS };
}

/** Deletes what is left of the runner and sees it gone; a pod that outlives its grace by a minute is deleted without grace. */
export async function tearDown(life: RunnerLife): Promise<void> {
  life.pass('TearingDown');
  const { runner, spec } = life;
  let gone = (await deleteAll(life)) === 'gone';
  while (!gone && runner.pod !== undefined) {
    const withinMs = spec.pod.terminationGracePeriodSeconds * 1_000 + TERMINATION_OVERDUE_MS;
    life.linger();
    life.waitFor('pod to be gone', Date.now() + withinMs);
    await awaitPod(life, 'gone', withinMs);
    if (runner.pod.gone) return;
    const forced = await settle(clusterCalls({ summary: 'delete the pod without grace: it outlived its own' }).tearDown({ ...tearDownInput(life), gracePeriodSeconds: 0 }));
    gone = forced.kind === 'done' && forced.value === 'gone';
  }
}

/** A pod that is spent was deleted when its end was seen (activities/watcher.ts): there is little left to do, or to wait for. */
async function deleteAll(life: RunnerLife): Promise<'gone' | 'terminating'> {
  const { pod } = life.runner;
  const input = tearDownInput(life);
  if (pod !== undefined && isSpent(pod)) {
    const soon = await settle(shortCalls().tearDown({ ...input, goneWithinMs: Math.min(input.goneWithinMs, SOON_MS) }));
    if (soon.kind === 'done') return soon.value;
  }
  return await clusterCalls({ summary: 'delete pod and Secret' }).tearDown(input);
}
