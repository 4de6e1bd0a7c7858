/**
 * Stops the pod, and tears down pod, Secret and claims. Both use the activity `tearDown`, which
 * deletes the objects that its input names.
 */
import type {
  WithLocation,
  PodDeletion,
  SetNotification,
  TearDownInput,
} from '../../core/activities/index.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { STOP_REASON_BY_CAUSE } from '../../core/domain/cancellation.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';
import { TERMINATION_OVERDUE_MS, isCompletedEphemeral } from '../../core/domain/podConditions.ts';
import type { RunnerSpec } from '../../core/input/runner.ts';
import {
  callUnless,
  clusterActivities,
  localTearDown,
  toCallResult,
} from '../shared/activityProxies.ts';
import { fenceClaims } from './claims.ts';
import type { RunnerState } from './state.ts';
import { awaitPod, podRef, recordPod } from './podWaits.ts';
import { setMemo } from './notifySet.ts';
import type { UnregistrationAction } from './unregisterTable.ts';

type StopPodAction = Extract<UnregistrationAction, { kind: 'stopPod' }>;
type TearDownAction = Extract<UnregistrationAction, { kind: 'tearDown' }>;

/**
 * Grace period of a forced stop, the shortest that a kubelet enforces. A pod deleted with grace
 * period 0 disappears from the API server at once. Its kubelet then never sees a deadline and gives
 * the containers the full grace period of the pod.
 */
const FORCED_GRACE_SECONDS = 1;
/** Time after which a kubelet that has not killed the pod counts as unresponsive (ms). */
export const FORCE_KILL_TIMEOUT_MS = 10_000;
/**
 * Maximum interval between deletion requests for a pod whose deletion is blocked, for example by a
 * finalizer (ms). A shorter interval would fill the history.
 */
const MAX_DELETION_RETRY_MS = 60 * 60_000;

/**
 * Time after which a rejected deletion is shown in the details (ms). From then on the reason is
 * updated at the interval REJECTION_UPDATE_MS.
 */
const REJECTION_SHOWN_MS = 20_000;
const REJECTION_UPDATE_MS = 60 * 60_000;

/**
 * Returns the time after which a pod that still exists after its deletion has outlived its grace
 * period (ms).
 */
function overdueMs({ pod }: RunnerSpec): number {
  return pod.terminationGracePeriodSeconds * 1_000 + TERMINATION_OVERDUE_MS;
}

/**
 * Returns the grace period of a stop (seconds): the pod's own, without the drain time if the stop
 * does not wait for the job. A supervisor that does not receive the stop reason in time, or already
 * drains because another party deleted the pod, gets no additional time.
 */
function stopGraceSeconds({ spec: { pod }, cancel }: RunnerState): number {
  const drainMs =
    STOP_REASON_BY_CAUSE[cancel?.by ?? 'cancelled'] === 'drained'
      ? 0
      : pod.supervision.drainTimeoutMs;
  return pod.terminationGracePeriodSeconds - Math.floor(drainMs / 1_000);
}

/**
 * Returns the time after which a pod that still exists after a stop request has outlived the grace
 * period of the stop (ms). A kubelet does not always accept a shorter grace period than the one it
 * started with.
 */
export function stopOverdueMs(state: RunnerState): number {
  return stopGraceSeconds(state) * 1_000 + TERMINATION_OVERDUE_MS;
}

/**
 * Returns the options of a stop request: the reason given to the pod's supervisor, and the grace
 * period unless it is the pod's own.
 */
export function stopOptions(
  state: RunnerState,
  {
    mode,
    overdue,
    unlessStarted,
  }: Pick<StopPodAction, 'mode' | 'overdue'> & {
    readonly unlessStarted: StopPodAction['unlessStarted'] | undefined;
  },
): Pick<NonNullable<TearDownInput['pod']>, 'stopReason' | 'gracePeriodSeconds' | 'unlessStarted'> {
  const { runner, spec, cancel } = state;
  const stopReason = STOP_REASON_BY_CAUSE[cancel?.by ?? 'cancelled'];
  // Without a reason, SIGTERM means what `onTerm` says and counts as a cancellation. Only a pod
  // with a supervisor can receive a reason.
  const announced =
    unlessStarted !== true &&
    runner.pod?.online !== undefined &&
    mode !== 'force' &&
    (spec.pod.supervision.onTerm !== 'stop' || stopReason !== 'cancelled');
  const forcedSeconds = overdue ? 0 : FORCED_GRACE_SECONDS;
  const graceSeconds = mode === 'force' ? forcedSeconds : stopGraceSeconds(state);
  const isOwn = graceSeconds === spec.pod.terminationGracePeriodSeconds;
  return omitUndefined({
    stopReason: announced ? stopReason : undefined,
    gracePeriodSeconds: isOwn ? undefined : graceSeconds,
    unlessStarted,
  });
}

/**
 * Stops a running pod.
 *
 * @param overdue - whether the pod has exceeded its grace period; it is then deleted without one
 * @param unlessStarted - do not stop the pod if its container has started since it was last read
 * @param isInterrupted - returns true when a change must be evaluated first
 * @returns whether the cluster accepted the request before it was cancelled
 */
export async function stopPod(
  state: RunnerState,
  {
    mode,
    overdue,
    unlessStarted,
    reason,
  }: Pick<StopPodAction, 'mode' | 'overdue' | 'unlessStarted' | 'reason'>,
  isInterrupted: () => boolean,
): Promise<boolean> {
  const { runner, cancel } = state;
  if (runner.pod === undefined) return true;
  const what = remainingObjects(state, {
    ...stopOptions(state, { mode, overdue, unlessStarted }),
    reason: overdue ? reason : (cancel?.by ?? reason),
    saveLog: !overdue,
  });
  const deletion = await retryDeletion(
    state,
    mode === 'force' ? 'Kill the pod' : 'Stop the pod',
    what,
    isInterrupted,
  );
  if (deletion === undefined || isRemaining(state, deletion)) return false;
  state.deletion = Promise.resolve(deletion);
  if (deletion === 'deleted') recordPod(state, { ...runner.pod, deleted: true, ended: true });
  return true;
}

/**
 * Requests a deletion until the cluster accepts it. The API server may be unavailable, or an
 * operator may have to grant a missing permission first. The last rejection reason is shown in the
 * details, and that of each attempt under Pending Activities.
 *
 * @returns `undefined` if it was cancelled
 */
async function retryDeletion(
  state: RunnerState,
  summary: string,
  what: WithLocation<TearDownInput>,
  isInterrupted: () => boolean,
): Promise<PodDeletion | PodSnapshot | undefined> {
  for (let withinMs = REJECTION_SHOWN_MS; ; withinMs = REJECTION_UPDATE_MS) {
    const called = await callUnless(
      isInterrupted,
      async () => await clusterActivities({ summary, withinMs }).tearDown(what),
      { abandon: () => state.isForced },
    );
    state.deletionError = called.kind === 'failed' ? called.message : undefined;
    if (called.kind === 'done') return called.value;
    if (called.kind === 'interrupted') return undefined;
    reportDeletionError(state);
  }
}

function reportDeletionError(state: RunnerState): void {
  if (state.deletionError === undefined) return;
  state.publishPhase();
  state.setWaitReason(`the cluster to accept a deletion: ${state.deletionError}`);
}

/**
 * Whether the pod was kept, because its container has started or its runner is not idle. Records
 * the state of a pod that was kept.
 */
function isRemaining(
  state: RunnerState,
  deletion: PodDeletion | PodSnapshot,
): deletion is PodSnapshot {
  if (typeof deletion === 'string') return false;
  recordPod(state, deletion);
  return true;
}

/**
 * Deletes the pod and Secret of a runner that, according to its last known state, is idle or never
 * started its container.
 *
 * @param isInterrupted - returns true when a change must be evaluated first
 * @returns whether they are deleted. They are kept if the runner has started, become busy or ended
 * in the meantime
 */
export async function tearDownUnless(
  state: RunnerState,
  { unlessStarted, unlessBusy }: Pick<TearDownAction, 'unlessStarted' | 'unlessBusy'>,
  isInterrupted: () => boolean,
): Promise<boolean> {
  state.recordPhase('TearingDown');
  const deletion = await retryDeletion(
    state,
    'Delete pod and Secret',
    remainingObjects(state, {
      waitForDeletion: true,
      ...omitUndefined({ unlessStarted, unlessBusy }),
      ...(unlessBusy === true && keepsLog(state) ? { saveLog: true } : {}),
    }),
    isInterrupted,
  );
  if (deletion === undefined || isRemaining(state, deletion)) return false;
  state.deletion = Promise.resolve(deletion);
  return true;
}

/**
 * Requests the deletion of pod and Secret, unless it has already been requested.
 *
 * @param notification - notification for the set of a runner whose end is final
 */
export function beginTearDown(
  state: RunnerState,
  notification?: SetNotification,
): Promise<PodDeletion> {
  if (state.deletion === undefined) {
    state.deletion = deleteRemaining(state, notification);
    // A caller that starts the teardown early awaits it later, in tearDown.
    void state.deletion.catch(() => undefined);
  }
  return state.deletion;
}

/**
 * Deletes the remaining objects of the runner and waits until they no longer exist. A pod that
 * outlives its grace period by a minute is deleted without a grace period.
 */
export async function tearDown(
  state: RunnerState,
  notification: SetNotification | undefined,
): Promise<void> {
  await awaitDeletion(state, notification);
  await fenceClaims(state);
}

/**
 * Returns how long a pod may still take to terminate (ms). A pod that counts as ended because it is
 * overdue gets no additional time. A worker decides whether it is overdue, because its deadline is
 * a time of the cluster's clock.
 */
function untilOverdueMs({ runner, spec }: RunnerState): number {
  const { ended } = runner;
  return ended?.terminating === true && !ended.ended ? 1 : overdueMs(spec);
}

async function awaitDeletion(
  state: RunnerState,
  notification: SetNotification | undefined,
): Promise<void> {
  const { runner, spec } = state;
  state.recordPhase('TearingDown');
  let { cancel } = state;
  let waitMs = untilOverdueMs(state);
  reportDeletionError(state);
  let deletion = await beginTearDown(state, notification);
  while (deletion !== 'deleted' && runner.pod?.deleted === false) {
    state.publishPhase();
    state.setWaitReason('pod to be gone', Date.now() + waitMs);
    if (state.cancel === cancel) await awaitPod(state, 'deleted', waitMs);
    // A function call, because `awaitPod` changes the value and a direct check would be narrowed by
    // the compiler.
    if (isGone(state)) return;
    const stronger = state.cancel === cancel ? undefined : state.cancel?.mode;
    ({ cancel } = state);
    // The pod is already terminating with its own grace period. Only a forced stop shortens it.
    if (stronger !== undefined && stronger !== 'force') continue;
    if (stronger === undefined)
      waitMs = Math.min(Math.max(2 * waitMs, overdueMs(spec)), MAX_DELETION_RETRY_MS);
    const [summary, gracePeriodSeconds] =
      stronger === 'force'
        ? ['Kill the pod', FORCED_GRACE_SECONDS]
        : ['Delete the pod without a grace period', 0];
    deletion = await deleteUntilAccepted(
      state,
      summary,
      remainingObjects(state, { gracePeriodSeconds, waitForDeletion: true }),
    );
  }
}

/** Deletes the claims that belong to this workflow, after its last runner has ended. */
export async function tearDownClaims(state: RunnerState): Promise<void> {
  const { spec, runner } = state;
  const claims = spec.pod.volumeClaims.filter(({ claim }) => claim === undefined);
  if (claims.length === 0) return;
  await deleteUntilAccepted(state, 'Delete the claims', {
    location: spec.location,
    identity: runner.identity,
    claims,
    ...omitUndefined({ namespace: spec.pod.namespace }),
  });
}

const isGone = ({ runner }: RunnerState): boolean => runner.pod?.deleted === true;

async function deleteRemaining(
  state: RunnerState,
  notification: SetNotification | undefined,
): Promise<PodDeletion> {
  const { pod } = state.runner;
  const saveLog = keepsLog(state);
  const what = remainingObjects(state, { waitForDeletion: true, ...(saveLog ? { saveLog } : {}) });
  if (pod !== undefined && isCompletedEphemeral(pod)) {
    // The pod was deleted when its end was observed (activities/runner/deleteCompletedPod.ts), so
    // there is little left to do or to wait for.
    const early = setMemo().notifyEndEarly === true;
    const notify = notification && { ...notification, early };
    const local = await toCallResult(localTearDown({ ...what, ...omitUndefined({ notify }) }));
    if (local.kind === 'done' && typeof local.value === 'string') {
      if (early || local.value === 'deleted') state.notifiedEnded = true;
      return local.value;
    }
  }
  return await deleteUntilAccepted(state, 'Delete pod and Secret', what);
}

/** Whether to keep the end of the log, which is done for runners that may not have succeeded. */
function keepsLog({ runner: { pod }, cancel }: RunnerState): boolean {
  return (
    pod?.startedAt !== undefined && !pod.deleted && (pod.exit?.code !== 0 || cancel !== undefined)
  );
}

/** Deletes the objects in any state of the pod. A cancel request does not interrupt this. */
async function deleteUntilAccepted(
  state: RunnerState,
  summary: string,
  what: WithLocation<TearDownInput>,
): Promise<PodDeletion> {
  const deletion = await retryDeletion(state, summary, what, () => false);
  return deletion === 'deleted' ? deletion : 'terminating';
}

function remainingObjects(
  { runner, spec }: RunnerState,
  how: Omit<NonNullable<TearDownInput['pod']>, 'ref'>,
): WithLocation<TearDownInput> {
  const { identity, pod } = runner;
  return {
    location: spec.location,
    identity,
    ...omitUndefined({ namespace: spec.pod.namespace }),
    pod: { ...omitUndefined({ ref: pod && podRef(pod) }), ...how },
    secret: true,
  };
}
