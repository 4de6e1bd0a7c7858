/** The end of what runs: the pod's stop, and the tear-down of pod, Secret and claims. Both are one activity, which deletes what it is told to. */
import type { PodDeletion, TearDownInput } from '../../core/calls/index.ts';
import { defined } from '../../core/defined.ts';
import type { Cancellation } from '../../core/domain/cancellation.ts';
import type { StopReason } from '../../core/domain/pod.ts';
import { TERMINATION_OVERDUE_MS, isSpent } from '../../core/domain/podConditions.ts';
import type { RunnerSpec } from '../../core/input/runner.ts';
import { clusterCalls, localTearDown, settle } from '../calls.ts';
import type { RunnerLife } from './life.ts';
import { awaitPod, podRef, see } from './podWaits.ts';
import type { StopMode } from './unregisterFacts.ts';

/** What the supervisor is told when this workflow stops its pod. */
const STOP_REASON: Readonly<Record<Cancellation['by'], StopReason>> = {
  cancelled: 'cancelled',
  superseded: 'superseded',
  run_timeout: 'timeout',
  idle_timeout: 'drained',
  drain: 'drained',
};

/**
 * A pod that is deleted with grace 0 is gone from the API server at once, and its kubelet, which never sees a deadline, gives the containers
 * the pod's whole own grace: a forced stop asks for the shortest grace that a kubelet keeps.
 */
const FORCED_GRACE_SECONDS = 1;
/** A kubelet that has not killed the pod by then does not answer. */
export const FORCED_OVERDUE_MS = 10_000;

/** A pod that is still there so long after its deletion has outlived its grace. */
export function overdueMs({ pod }: RunnerSpec): number {
  return pod.terminationGracePeriodSeconds * 1_000 + TERMINATION_OVERDUE_MS;
}

/** The grace of a stop that does not wait for the job: the pod's own, without the drain. */
function stopGraceSeconds({ pod }: RunnerSpec): number {
  return pod.terminationGracePeriodSeconds - Math.floor(pod.supervision.drainTimeoutMs / 1_000);
}

/** Stops a pod that lives. @param overdue - it outlived its grace: none is left */
export async function stopPod(life: RunnerLife, { mode, overdue, why }: { readonly mode: StopMode; readonly overdue: boolean; readonly why: string }): Promise<void> {
  const { runner, spec, cancel } = life;
  if (runner.pod === undefined) return;
  const stopReason = STOP_REASON[cancel?.by ?? 'cancelled'];
  // Without a word SIGTERM means what `onTerm` says, and counts as a cancellation.
  const announced = runner.pod.online !== undefined && mode !== 'force' && (spec.pod.supervision.onTerm !== 'stop' || stopReason !== 'cancelled');
  // A supervisor that is not told in time, or is draining already because somebody else deleted the pod, gets no more than a stop's grace.
  const cutsDrain = spec.pod.supervision.drainTimeoutMs > 0 && stopReason !== 'drained';
  const forcedSeconds = overdue ? 0 : FORCED_GRACE_SECONDS;
  const gracePeriodSeconds = mode === 'force' ? forcedSeconds : cutsDrain ? stopGraceSeconds(spec) : undefined;
  const how = defined({ announce: announced ? stopReason : undefined, gracePeriodSeconds });
  life.deletion = clusterCalls({ summary: mode === 'force' ? 'kill the pod' : 'stop the pod gracefully' }).tearDown(
    whatRan(life, { ...how, reason: overdue ? why : (cancel?.by ?? why), keepLog: !overdue }),
  );
  if ((await life.deletion) === 'gone') see(life, { ...runner.pod, gone: true, ended: true });
}

/** Has pod and Secret deleted, unless they are being deleted already. */
export function beginTearDown(life: RunnerLife): Promise<PodDeletion> {
  if (life.deletion === undefined) {
    life.deletion = deleteWhatRan(life);
    // Who begins it early awaits it later, in tearDown.
    void life.deletion.catch(() => undefined);
  }
  return life.deletion;
}

/** Deletes what is left of the runner and sees it gone; a pod that outlives its grace by a minute is deleted without grace. */
export async function tearDown(life: RunnerLife): Promise<void> {
  const { runner, spec } = life;
  life.pass('TearingDown');
  let state = await beginTearDown(life);
  while (state !== 'gone' && runner.pod?.gone === false) {
    life.linger();
    life.waitFor('pod to be gone', Date.now() + overdueMs(spec));
    await awaitPod(life, 'gone', overdueMs(spec));
    // Through another call, because what `awaitPod` sees changes it.
    if (isGone(life)) return;
    const forced = await settle(clusterCalls({ summary: 'delete the pod without grace: it outlived its own' }).tearDown(whatRan(life, { gracePeriodSeconds: 0, untilGone: true })));
    if (forced.kind === 'done') state = forced.value;
  }
}

/** Deletes the claims that are the life's own: at its very end, after its last runner. */
export async function tearDownClaims({ spec, runner }: RunnerLife): Promise<void> {
  const claims = spec.pod.volumeClaims.filter(({ claim }) => claim === undefined);
  if (claims.length === 0) return;
  await clusterCalls({ summary: 'delete the claims' }).tearDown({ identity: runner.identity, claims, ...defined({ namespace: spec.pod.namespace }) });
}

const isGone = ({ runner }: RunnerLife): boolean => runner.pod?.gone === true;

async function deleteWhatRan(life: RunnerLife): Promise<PodDeletion> {
  const { runner, cancel } = life;
  const { pod } = runner;
  // The log's tail is kept of a runner that may not have succeeded.
  const keepLog = pod?.startedAt !== undefined && !pod.gone && (pod.exit?.code !== 0 || cancel !== undefined);
  const what = whatRan(life, { untilGone: true, ...(keepLog ? { keepLog } : {}) });
  if (pod !== undefined && isSpent(pod)) {
    // It was deleted when its end was seen (activities/earlyDeletion.ts): there is little left to do, or to wait for.
    const soon = await settle(localTearDown(what));
    if (soon.kind === 'done') return soon.value;
  }
  return await clusterCalls({ summary: 'delete pod and Secret' }).tearDown(what);
}

function whatRan({ runner, spec }: RunnerLife, how: Omit<NonNullable<TearDownInput['pod']>, 'ref'>): TearDownInput {
  const { identity, pod } = runner;
  return { identity, ...defined({ namespace: spec.pod.namespace }), pod: { ...defined({ ref: pod && podRef(pod) }), ...how }, secret: true };
}
