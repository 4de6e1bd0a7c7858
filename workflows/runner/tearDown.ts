/** The end of what runs: the pod's stop, and the tear-down of pod, Secret and claims. Both are one activity, which deletes what it is told to. */
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
 * A pod that is deleted with grace 0 is gone from the API server at once, and its kubelet, which never sees a deadline, gives the containers
 * the pod's whole own grace: a forced stop asks for the shortest grace that a kubelet keeps.
 */
const FORCED_GRACE_SECONDS = 1;
/** A kubelet that has not killed the pod by then does not answer. */
export const FORCE_KILL_TIMEOUT_MS = 10_000;
/** A pod that something else holds (a finalizer) is asked for again and again, but not so often that history fills. */
const MAX_DELETION_RETRY_MS = 60 * 60_000;

/** A deletion that is refused for so long is told in the details; from then on the reason is told anew so often, in ms. */
const REFUSED_MS = 20_000;
const STILL_REFUSED_MS = 60 * 60_000;

/** A pod that is still there so long after its deletion has outlived its grace. */
function overdueMs({ pod }: RunnerSpec): number {
  return pod.terminationGracePeriodSeconds * 1_000 + TERMINATION_OVERDUE_MS;
}

/**
 * The grace of a stop: the pod's own, without the drain where the job is not waited for. A supervisor that is not told in time, or is
 * draining already because somebody else deleted the pod, gets no more.
 */
function stopGraceSeconds({ spec: { pod }, cancel }: RunnerState): number {
  const drainMs =
    STOP_REASON_BY_CAUSE[cancel?.by ?? 'cancelled'] === 'drained'
      ? 0
      : pod.supervision.drainTimeoutMs;
  return pod.terminationGracePeriodSeconds - Math.floor(drainMs / 1_000);
}

/** A pod that is still there so long after it was asked to stop has outlived the grace of the stop: a kubelet does not always take a shorter one than it began with. */
export function stopOverdueMs(state: RunnerState): number {
  return stopGraceSeconds(state) * 1_000 + TERMINATION_OVERDUE_MS;
}

/** Returns how a pod is asked to stop: which reason its supervisor is given, and which grace unless it is the pod's own. */
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
  // Without a reason SIGTERM means what `onTerm` says, and counts as a cancellation.
  // Only a pod with a supervisor can be told one.
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
 * Stops a pod that lives.
 * @param overdue - it outlived its grace: none is left
 * @param unlessStarted - left alone if its container has started since it was looked at
 * @param calledOff - something has changed that is to be decided upon first
 * @returns whether the cluster took it before it was called off
 */
export async function stopPod(
  state: RunnerState,
  {
    mode,
    overdue,
    unlessStarted,
    reason,
  }: Pick<StopPodAction, 'mode' | 'overdue' | 'unlessStarted' | 'reason'>,
  calledOff: () => boolean,
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
    mode === 'force' ? 'kill the pod' : 'stop the pod gracefully',
    what,
    calledOff,
  );
  if (deletion === undefined || isRemaining(state, deletion)) return false;
  state.deletion = Promise.resolve(deletion);
  if (deletion === 'deleted') recordPod(state, { ...runner.pod, deleted: true, ended: true });
  return true;
}

/**
 * Asks for a deletion until the cluster takes it: somebody may have to allow it first, or the API server to come back. Why it was refused last
 * is in the details, and with each try under Pending Activities.
 * @returns `undefined` when it was called off
 */
async function retryDeletion(
  state: RunnerState,
  summary: string,
  what: WithLocation<TearDownInput>,
  calledOff: () => boolean,
): Promise<PodDeletion | PodSnapshot | undefined> {
  for (let withinMs = REFUSED_MS; ; withinMs = STILL_REFUSED_MS) {
    const called = await callUnless(
      calledOff,
      async () => await clusterActivities({ summary, withinMs }).tearDown(what),
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
  state.setWaitReason(`the cluster to take a deletion: ${state.deletionError}`);
}

/** Was the pod left alone, because it has started? Then that is known now. */
function isRemaining(
  state: RunnerState,
  deletion: PodDeletion | PodSnapshot,
): deletion is PodSnapshot {
  if (typeof deletion === 'string') return false;
  recordPod(state, deletion);
  return true;
}

/**
 * Has pod and Secret of a runner deleted whose container never started, or that is idle, as far as is known.
 * @param calledOff - something has changed that is to be decided upon first
 * @returns whether that is so: one that has started, or turned busy or ended by then is left alone
 */
export async function tearDownUnless(
  state: RunnerState,
  { unlessStarted, unlessBusy }: Pick<TearDownAction, 'unlessStarted' | 'unlessBusy'>,
  calledOff: () => boolean,
): Promise<boolean> {
  state.recordPhase('TearingDown');
  const deletion = await retryDeletion(
    state,
    'delete pod and Secret',
    remainingObjects(state, {
      waitForDeletion: true,
      ...omitUndefined({ unlessStarted, unlessBusy }),
      ...(unlessBusy === true && keepsLog(state) ? { saveLog: true } : {}),
    }),
    calledOff,
  );
  if (deletion === undefined || isRemaining(state, deletion)) return false;
  state.deletion = Promise.resolve(deletion);
  return true;
}

/** Has pod and Secret deleted, unless they are being deleted already. @param word - told to the set of a runner whose end nothing can change any more */
export function beginTearDown(state: RunnerState, word?: SetNotification): Promise<PodDeletion> {
  if (state.deletion === undefined) {
    state.deletion = deleteRemaining(state, word);
    // Who begins it early awaits it later, in tearDown.
    void state.deletion.catch(() => undefined);
  }
  return state.deletion;
}

/** Deletes what is left of the runner and sees it gone; a pod that outlives its grace by a minute is deleted without grace. */
export async function tearDown(
  state: RunnerState,
  word: SetNotification | undefined,
): Promise<void> {
  await awaitDeletion(state, word);
  await fenceClaims(state);
}

/** How long a pod may still take to go: by its own deadline, where it is known. One that counts as ended because that is overdue has no more time. */
function untilOverdueMs({ runner, spec }: RunnerState): number {
  const deadline = runner.pod?.terminationDeadline;
  if (deadline === undefined) return overdueMs(spec);
  return Math.min(
    Math.max(Date.parse(deadline) + TERMINATION_OVERDUE_MS - Date.now(), 1),
    overdueMs(spec),
  );
}

async function awaitDeletion(state: RunnerState, word: SetNotification | undefined): Promise<void> {
  const { runner, spec } = state;
  state.recordPhase('TearingDown');
  let { cancel } = state;
  let waitMs = untilOverdueMs(state);
  reportDeletionError(state);
  let deletion = await beginTearDown(state, word);
  while (deletion !== 'deleted' && runner.pod?.deleted === false) {
    state.publishPhase();
    state.setWaitReason('pod to be gone', Date.now() + waitMs);
    if (state.cancel === cancel) await awaitPod(state, 'deleted', waitMs);
    // Through another call, because what `awaitPod` sees changes it.
    if (isGone(state)) return;
    const stronger = state.cancel === cancel ? undefined : state.cancel?.mode;
    ({ cancel } = state);
    // It is on its way, with its own grace: only a force asks for less.
    if (stronger !== undefined && stronger !== 'force') continue;
    if (stronger === undefined)
      waitMs = Math.min(Math.max(2 * waitMs, overdueMs(spec)), MAX_DELETION_RETRY_MS);
    const [summary, gracePeriodSeconds] =
      stronger === 'force'
        ? ['kill the pod', FORCED_GRACE_SECONDS]
        : ['delete the pod without grace: it outlived its own', 0];
    deletion = await deleteUntilAccepted(
      state,
      summary,
      remainingObjects(state, { gracePeriodSeconds, waitForDeletion: true }),
    );
  }
}

/** Deletes the claims that are the life's own: at its very end, after its last runner. */
export async function tearDownClaims(state: RunnerState): Promise<void> {
  const { spec, runner } = state;
  const claims = spec.pod.volumeClaims.filter(({ claim }) => claim === undefined);
  if (claims.length === 0) return;
  await deleteUntilAccepted(state, 'delete the claims', {
    location: spec.location,
    identity: runner.identity,
    claims,
    ...omitUndefined({ namespace: spec.pod.namespace }),
  });
}

const isGone = ({ runner }: RunnerState): boolean => runner.pod?.deleted === true;

async function deleteRemaining(
  state: RunnerState,
  word: SetNotification | undefined,
): Promise<PodDeletion> {
  const { pod } = state.runner;
  const saveLog = keepsLog(state);
  const what = remainingObjects(state, { waitForDeletion: true, ...(saveLog ? { saveLog } : {}) });
  if (pod !== undefined && isCompletedEphemeral(pod)) {
    // It was deleted when its end was seen (activities/runner/deleteCompletedPod.ts): there is little left to do, or to wait for.
    const early = setMemo().notifyEndEarly === true;
    const soon = await toCallResult(
      localTearDown({ ...what, ...omitUndefined({ notify: word && { ...word, early } }) }),
    );
    if (soon.kind === 'done' && typeof soon.value === 'string') {
      if (early || soon.value === 'deleted') state.notifiedEnded = true;
      return soon.value;
    }
  }
  return await deleteUntilAccepted(state, 'delete pod and Secret', what);
}

/** Whether the log's tail is kept: of a runner that may not have succeeded. */
function keepsLog({ runner: { pod }, cancel }: RunnerState): boolean {
  return (
    pod?.startedAt !== undefined && !pod.deleted && (pod.exit?.code !== 0 || cancel !== undefined)
  );
}

/** Nothing calls this off, and no pod is left alone. */
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
