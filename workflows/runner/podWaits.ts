/** What a life waits for, and hears, of its runner's pod. */
import { condition, sleep } from '@temporalio/workflow';
import type { PodRef, PodSnapshot } from '../../core/domain/pod.ts';
import { isBusy, waitActivityId, type PodCondition } from '../../core/domain/podConditions.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import type { SetNotification } from '../../core/activities/index.ts';
import {
  clusterActivities,
  podWaitActivities,
  toCallResult,
  type CallResult,
} from '../shared/activityProxies.ts';
import type { CurrentRunner } from './carriedState.ts';
import type { RunnerState } from './state.ts';
import { onlineNotification } from './notifySet.ts';

/** Between two waits for a runner's end, the first of which told nothing; doubles, in ms. */
const INITIAL_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/**
 * Waits for a condition of the runner's pod, and keeps what was seen. Interrupted by a cancel: the workflow loses interest, the wait
 * stays (the server refuses the same activity id while a cancelled one is pending), and is what the next one waits for.
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
  else await refreshPod(state, 'look at the pod');
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
    podWait(state, pod, until, { summary: `pod to be ${until}`, withinMs }),
  ).finally(() => state.podWaits.delete(id));
  state.podWaits.set(id, wait);
  return wait;
}

/** Starts the one wait for the runner's end; its answer lies in `runner.ended` whenever it comes. Of one that is up it tells its set as it begins. */
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

/** A wait that failed (by hand, say), or was answered with another pod, is no end: it is scheduled again, and looks live as it begins. */
async function watchUntilEnd(
  state: RunnerState,
  runner: CurrentRunner,
  pod: PodSnapshot,
  tells: SetNotification | undefined,
): Promise<void> {
  for (let againMs = INITIAL_RETRY_MS; ; againMs = Math.min(2 * againMs, MAX_RETRY_MS)) {
    const called = await toCallResult(
      podWait(state, pod, 'ended', { summary: 'runner to end' }, tells),
    );
    if (called.kind === 'done' && recordPod(state, called.value)) runner.ended = called.value;
    if (state.runner !== runner || runner.ended !== undefined || runner.pod?.deleted === true)
      return;
    await sleep(againMs, {
      summary: 'before the runner is waited for again: its end was not told',
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

/** Looks at the pod live. @param summary - why, for the operator */
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
  state.confirmIdle(askedAtMs);
}

/** Takes in what was seen of the pod. A view of another pod of the same name (another UID) changes nothing. */
export function recordPod(state: RunnerState, pod: PodSnapshot): boolean {
  const { runner } = state;
  const last = runner.pod;
  if (last === undefined || pod.uid !== last.uid) return false;
  // What an ended or a vanished pod was last known to be still holds: our own deletion must not pass for somebody else's.
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
  const busy = isBusy(pod, Date.now());
  if (busy !== undefined && pod.online === true && !pod.ended) state.applyPodState(busy);
  if (pod.endedBusy === true) state.applyPodState(true);
  const job = pod.exit?.record?.job;
  // What the runner itself wrote down at its end beats what was last seen of it: its probes fail in its last moments, as those of a busy one do.
  if (job !== undefined) runner.podBusy = job === 'running' || job === 'interrupted';
  if (job !== undefined && job !== 'none') Object.assign(runner, { online: true, hadJob: true });
  return true;
}

/** What names exactly this pod. */
export function podRef({ name, uid, namespace }: PodSnapshot): PodRef {
  return { name, uid, ...omitUndefined({ namespace }) };
}
