/** Waits for conditions of the runner's pod, and records its observed state. */
import { condition, sleep } from '@temporalio/workflow';
import type { PodRef, PodSnapshot } from '../../core/domain/pod.ts';
import { waitActivityId, type PodCondition } from '../../core/domain/podConditions.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { SetNotification } from '../../core/activities/index.ts';
import {
  clusterActivities,
  podWaitActivities,
  toCallResult,
  type CallResult,
} from '../shared/activityProxies.ts';
import type { CurrentRunner } from './carriedState.ts';
import { applyPodState, confirmIdle } from './runnerActivity.ts';
import type { RunnerState } from './state.ts';
import { onlineNotification } from './notifySet.ts';

/**
 * Delay between two waits for a runner's end, if the first returned nothing. Doubles up to
 * MAX_RETRY_MS (ms).
 */
const INITIAL_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/**
 * Waits for a condition of the runner's pod and records the observed state.
 *
 * A cancel interrupts it: the workflow stops waiting, but the activity remains pending, because the
 * server rejects the same activity id while a cancelled activity with this id is pending. The next
 * wait for the same condition uses that activity.
 */
export async function awaitPod(
  state: RunnerState,
  until: PodCondition,
  withinMs: number,
): Promise<void> {
  const { pod } = state.runner;
  if (pod === undefined) return;
  const cancelAtStart = state.cancel;
  const wait = pendingWait(state, pod, until, withinMs);
  let answer: Awaited<typeof wait> | undefined;
  void wait.then((called) => (answer = called));
  await condition(() => answer !== undefined || state.cancel !== cancelAtStart);
  if (answer === undefined) return;
  if (answer.kind === 'done') recordPod(state, answer.value);
  else await refreshPod(state, 'Get the pod');
}

function pendingWait(
  state: RunnerState,
  pod: PodSnapshot,
  until: PodCondition,
  withinMs: number,
): Promise<CallResult<PodSnapshot>> {
  const id = waitActivityId(until, pod.name);
  const pending = state.podWaits.get(id);
  if (pending !== undefined) return pending;
  const wait = toCallResult(
    podWait(state, pod, until, { summary: `Wait for the pod: ${until}`, withinMs }),
  ).finally(() => state.podWaits.delete(id));
  state.podWaits.set(id, wait);
  return wait;
}

/**
 * Starts the only wait for the runner's end, which sets `runner.ended` when it completes. For a
 * runner that is online, the wait notifies the set when it starts.
 */
export function awaitPodEnd(state: RunnerState): void {
  const { runner } = state;
  if (runner.pod !== undefined)
    void watchUntilEnd(
      state,
      runner,
      runner.pod,
      runner.pod.online === true && !runner.pod.ended ? onlineNotification(state) : undefined,
    );
}

/**
 * Repeats the wait until the end is observed. A wait that failed (completed by hand, for example)
 * or returned another pod does not prove an end: it is scheduled again and reads the pod live when
 * it starts.
 */
async function watchUntilEnd(
  state: RunnerState,
  runner: CurrentRunner,
  pod: PodSnapshot,
  tells: SetNotification | undefined,
): Promise<void> {
  for (let againMs = INITIAL_RETRY_MS; ; againMs = Math.min(2 * againMs, MAX_RETRY_MS)) {
    const called = await toCallResult(
      podWait(state, pod, 'ended', { summary: 'Wait for the runner to end' }, tells),
    );
    if (called.kind === 'done' && recordPod(state, called.value)) runner.ended = called.value;
    if (state.runner !== runner || runner.ended !== undefined || runner.pod?.deleted === true)
      return;
    await sleep(againMs, {
      summary: 'Retry the wait for the runner',
    });
  }
}

async function podWait(
  { spec }: RunnerState,
  pod: PodSnapshot,
  until: PodCondition,
  options: Parameters<typeof podWaitActivities>[2],
  notify?: SetNotification,
): Promise<PodSnapshot> {
  return await podWaitActivities(
    waitActivityId(until, pod.name),
    spec.intervals.resyncMs,
    options,
  ).awaitPod({ location: spec.location, pod: podRef(pod), until, ...omitUndefined({ notify }) });
}

/**
 * Reads the pod live.
 *
 * @param summary - reason, shown to operators
 */
export async function refreshPod(state: RunnerState, summary: string): Promise<void> {
  const { runner, spec } = state;
  if (runner.pod === undefined) return;
  const askedAtMs = Date.now();
  recordPod(
    state,
    await clusterActivities({ summary }).getPod({
      location: spec.location,
      pod: podRef(runner.pod),
    }),
  );
  confirmIdle(state, askedAtMs);
}

/**
 * Records the observed state of the pod. The state of another pod with the same name (another UID)
 * changes nothing.
 *
 * @returns whether the state is about this pod
 */
export function recordPod(state: RunnerState, pod: PodSnapshot): boolean {
  const { runner } = state;
  const last = runner.pod;
  if (last === undefined || pod.uid !== last.uid) return false;
  // The last known state of a pod that has ended or disappeared remains valid: a deletion by
  // Holdfast must not be mistaken for one by another party.
  if (last.ended) runner.pod = { ...last, deleted: last.deleted || pod.deleted };
  else
    runner.pod =
      pod.deleted && pod.startedAt === undefined
        ? {
            ...last,
            deleted: true,
            ended: true,
            ...omitUndefined({ endUnobserved: pod.endUnobserved }),
          }
        : pod;
  if (runner.pod.startedAt !== undefined) runner.startSeenMs ??= Date.now();
  const { busy } = pod;
  if (busy !== undefined && pod.online === true && !pod.ended)
    applyPodState(state, busy ? 'busy' : 'idle');
  if (pod.endedBusy === true) applyPodState(state, 'busy');
  const job = pod.exit?.record?.job;
  // The record that the runner wrote at its end takes precedence over the last observed state: in
  // its last moments its probes fail, as those of a busy runner do.
  if (job !== undefined) runner.podBusy = job === 'running' || job === 'interrupted';
  if (job !== undefined && job !== 'none') Object.assign(runner, { online: true, hadJob: true });
  return true;
}

/** Returns the reference that identifies exactly this pod. */
export function podRef({ name, uid, namespace }: PodSnapshot): PodRef {
  return { name, uid, ...omitUndefined({ namespace }) };
}
