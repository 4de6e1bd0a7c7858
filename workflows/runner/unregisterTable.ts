/**
 * The unregistration decision table, from the known facts to the next step. Pure. The first matching
 * row decides, so the order matters.
 *
 * The meaning of the CI server's responses and the reasons are described in docs/lifecycle.md.
 */
import type { WaitKind, StopMode, UnregistrationFacts } from './unregisterFacts.ts';

/** Row numbers of the decision table in docs/lifecycle.md. */
export const ROWS = [
  '1',
  '2',
  '3',
  '3-11',
  '4',
  '4a',
  '4b',
  '4c',
  '4d',
  '5',
  '6',
  '6a',
  '7',
  '8',
  '10',
] as const;
/** Row number of the decision table in docs/lifecycle.md. */
export type Row = (typeof ROWS)[number];

/** Next step of an unregistration, with the row that decided it. */
export type UnregistrationAction = { readonly row: Row; readonly reason: string } &
  /**
   * @property unlessStarted - the container may have started since the pod was last read; if it
   * has, decide again
   * @property unlessBusy - a job may have started since the pod was last read; if one has, decide
   * again
   */
  (
    | { readonly kind: 'tearDown'; readonly unlessStarted?: true; readonly unlessBusy?: true }
    /** A separate workflow removes the registration; then tear down. */
    | { readonly kind: 'handOff' }
    /**
     * Request the removal from the CI server. `retry`: repeat it while the CI server reports the
     * runner as busy.
     */
    | { readonly kind: 'remove'; readonly onBusy: 'retry' | 'return' }
    /**
     * @property overdue - the pod outlived its grace period, so it gets none
     * @property unlessStarted - as for `tearDown`
     */
    | {
        readonly kind: 'stopPod';
        readonly mode: StopMode;
        readonly overdue: boolean;
        readonly unlessStarted?: true;
      }
    /** Read the pod live: nothing is torn down based on an outdated state. */
    | { readonly kind: 'refreshPod' }
    | { readonly kind: 'wait'; readonly until: WaitKind }
  );

/** Decides the next step until the runner is unregistered and its pod may be deleted. */
export function decideUnregistration(f: UnregistrationFacts): UnregistrationAction {
  // The absence was proven earlier. A current response is decided by its own row below.
  if (f.absentSinceMs !== undefined && f.removalResult === undefined)
    return whenUnregistered(f, '1', 'the registration does not exist');
  // A runner that was asked to stop may exit with 0 in the middle of its job. Only a runner that was
  // not asked to stop has certainly removed itself.
  if (
    f.ephemeral &&
    f.ended &&
    f.exitCode === 0 &&
    f.hadJob &&
    f.stop === undefined &&
    f.stopped === undefined &&
    !f.terminationRequested
  ) {
    return {
      kind: 'tearDown',
      row: '2',
      reason: 'ephemeral runner completed its job and removed its own registration',
    };
  }
  if (!f.ended && f.stop === 'force' && !isStopped(f))
    return stopPod(f, '5', 'forced: delete the pod immediately');
  if (f.removalResult === undefined) return beforeRemoval(f);
  switch (f.removalResult) {
    case 'removed':
      return whenUnregistered(f, '3', 'CI server removed the registration');
    case 'absent':
      return whenUnregistered(f, '4a', 'CI server does not know the runner');
    case 'unlisted':
      return whenUnlisted(f);
    case 'busy':
      return whenBusy(f);
    case 'failed':
      return whenFailed(f);
  }
}

/**
 * Decides for a runner whose registration is removed, so it cannot take another job. The pod may be
 * deleted only if no job can still be running in it.
 */
function whenUnregistered(f: UnregistrationFacts, row: Row, because: string): UnregistrationAction {
  if (f.ended) return { kind: 'tearDown', row, reason: `${because} and the runner has ended` };
  if (!f.started) {
    // The container may have started since the pod was last read.
    return f.podRefreshed
      ? {
          kind: 'tearDown',
          row,
          reason: `${because} and the runner container never started`,
          unlessStarted: true,
        }
      : { kind: 'refreshPod', row, reason: `${because}; check whether its container has started` };
  }
  if (f.stop !== undefined) return stopOrAwait(f, row, `${because} and its stop was accepted`);
  if (f.observedActivity === 'idle') return whenIdle(f, row, because);
  if (f.observedActivity === 'busy')
    return awaitJob(f, row, `${because}, but a job is running: it may finish`);
  if (f.expiredWait === 'settled' || f.stopped !== undefined)
    return stopOrAwait(f, row, `${because} and the runner has not ended by itself in time`);
  // The server removed it only because it had no job. A runner that is only absent may still be ending its job.
  if (f.outlivesRegistration === true && f.removalResult === 'removed')
    return stopOrAwait(f, row, `${because} and the runner does not end by itself`);
  // A CI server may remove a runner whose job has only just started (docs/lifecycle.md). Unless the
  // runner itself reports idle, the pod may be busy.
  return { kind: 'wait', row, reason: `${because}; the runner ends by itself`, until: 'settled' };
}

/**
 * Waits for the job. If only an event reports the job, the pod is read repeatedly, because the
 * event of the job's end may be lost.
 */
function awaitJob(f: UnregistrationFacts, row: Row, reason: string): UnregistrationAction {
  if (f.idleInDoubt !== true) return { kind: 'wait', row, reason, until: 'jobDeadline' };
  return f.podRefreshed
    ? { kind: 'wait', row, reason, until: 'busyCheck' }
    : { kind: 'refreshPod', row, reason: 'a job event arrived, but the pod reports idle' };
}

/**
 * Decides for an unregistered runner that reports idle. Its report is one or two seconds old: a job
 * that started before the removal shows within that time, and no job can start after the removal.
 */
function whenIdle(f: UnregistrationFacts, row: Row, because: string): UnregistrationAction {
  if (f.expiredWait !== 'idleConfirmed')
    return {
      kind: 'wait',
      row,
      reason: `${because}; waiting for the runner to stay idle`,
      until: 'idleConfirmed',
    };
  if (!f.podRefreshed)
    return { kind: 'refreshPod', row, reason: `${because}; check whether the runner is idle` };
  return {
    kind: 'tearDown',
    row,
    reason: `${because} and the runner is idle`,
    unlessBusy: true,
  };
}

/**
 * Decides for a runner that the CI server does not list. The list may be outdated, so the runner may
 * have registered since or be about to.
 */
function whenUnlisted(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended) return awaitList();
  if (f.stop !== undefined)
    return stopOrAwait(f, '5', 'CI server does not know the runner yet, and its stop was accepted');
  if (!f.started) {
    // The container may have started since the pod was last read, and the runner may register. The
    // CI server is checked again after the runner has ended.
    return f.podRefreshed
      ? stopUnstarted(f)
      : {
          kind: 'refreshPod',
          row: '4a',
          reason: 'CI server does not list the runner; check whether its container has started',
        };
  }
  if (f.observedActivity === 'busy')
    return awaitJob(f, '4', 'CI server does not list the runner, but a job is running');
  if (f.wasRegistered) return awaitList();
  if (!f.registrationExpired)
    return {
      kind: 'wait',
      row: '4c',
      reason: 'runner may be about to register',
      until: 'absentCheck',
    };
  const action = whenUnregistered(f, '4b', 'runner did not register within its deadline');
  // Only the end of the runner proves that it can no longer register. The CI server is checked
  // again after that end.
  return action.kind === 'tearDown' ? stopOrAwait(f, '4b', action.reason) : action;
}

function stopUnstarted(f: UnregistrationFacts): UnregistrationAction {
  const action = stopOrAwait(f, '4a', 'runner container never started');
  return action.kind === 'stopPod' && !action.overdue ? { ...action, unlessStarted: true } : action;
}

function awaitList(): UnregistrationAction {
  return {
    kind: 'wait',
    row: '4d',
    reason: 'CI server does not list the runner, but lists may be old: list again',
    until: 'listRecheck',
  };
}

/** Decides after the CI server has reported the runner as busy. */
function whenBusy(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended)
    return {
      kind: 'handOff',
      row: '8',
      reason: 'CI server still reports the ended runner as busy',
    };
  if (f.stop !== undefined) return stopOrAwait(f, '5', 'runner is busy and its stop was accepted');
  return f.ephemeral || f.removalEndsJob === true
    ? {
        kind: 'wait',
        row: '6',
        reason: 'CI server reports the runner as busy: wait for its end',
        until: 'busyCheck',
      }
    : retryRemovalWhileBusy();
}

/**
 * Decides after a failed removal. A failure is never a reason to touch a running runner, and must
 * not delay the end of a runner that has ended.
 */
function whenFailed(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended)
    return {
      kind: 'handOff',
      row: '8',
      reason: 'unknown whether the ended runner is registered',
    };
  if (f.stop !== undefined)
    return stopOrAwait(
      f,
      '5',
      'unknown whether the runner is registered, and the stop was accepted',
    );
  return {
    kind: 'wait',
    row: '10',
    reason: 'the removal of the registration failed: retry',
    until: 'credentialsRetry',
  };
}

/** Decides while there is no current response of the CI server. */
function beforeRemoval(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended) return requestRemoval();
  if (isStopped(f)) return stopOrAwait(f, '5', 'pod is terminating');
  if (f.stop !== undefined) {
    return f.expiredWait === 'stopResponse'
      ? stopPod(f, '5', 'stop accepted and the CI server does not answer: stop the pod first')
      : requestRemoval('unregister, then terminate');
  }
  if (f.removalEndsJob === true) return beforeUnguardedRemoval(f);
  if (!f.ephemeral) return retryRemovalWhileBusy();
  // Requesting a removal while an ephemeral runner reports busy can only do harm: in the first
  // minute of a job, a DELETE may be answered with 204.
  if (f.observedActivity === 'busy')
    return f.expiredWait === 'busyCheck' && !f.podRefreshed
      ? { kind: 'refreshPod', row: '6', reason: 'ephemeral runner is busy: check again' }
      : {
          kind: 'wait',
          row: '6',
          reason: 'ephemeral runner is busy: wait for its end',
          until: 'busyCheck',
        };
  // The runner reports busy only some seconds after a job has started.
  return f.observedActivity === 'idle' && f.started && !f.podRefreshed
    ? { kind: 'refreshPod', row: '6', reason: 'check for a job that is not known yet' }
    : requestRemoval();
}

/**
 * Decides for a CI server that removes a runner while its job runs. Only the runner itself can show
 * that it has no job: the response of the CI server comes after the removal.
 */
function beforeUnguardedRemoval(f: UnregistrationFacts): UnregistrationAction {
  if (f.started && f.observedActivity !== 'idle')
    return {
      kind: 'wait',
      row: '6a',
      reason: 'the removal would end a job: wait until the runner is idle or has ended',
      until: 'busyCheck',
    };
  return f.podRefreshed
    ? requestRemoval()
    : { kind: 'refreshPod', row: '6a', reason: 'check for a job that is not known yet' };
}

function requestRemoval(reason = 'removal of the registration'): UnregistrationAction {
  return { kind: 'remove', row: '3-11', reason, onBusy: 'return' };
}

/** Requests the removal repeatedly until the job ends or reaches its own deadline. */
function retryRemovalWhileBusy(): UnregistrationAction {
  return {
    kind: 'remove',
    row: '7',
    reason: 'removal of the registration (retried until its job ends)',
    onBusy: 'retry',
  };
}

/** Whether the pod's stop was requested with at least the mode that is required now. */
function isStopped({ stopped, stop }: UnregistrationFacts): boolean {
  return stopped === 'force' || (stopped === 'stop' && stop !== 'force');
}

/**
 * Stops the pod or, if its stop was already requested, waits for its end. A pod that outlives its
 * grace period is stopped by force.
 */
function stopOrAwait(f: UnregistrationFacts, row: Row, reason: string): UnregistrationAction {
  if (!isStopped(f)) return stopPod(f, row, reason);
  return f.expiredWait === 'terminated'
    ? {
        kind: 'stopPod',
        row,
        reason: 'the pod outlived its grace period',
        mode: 'force',
        overdue: true,
      }
    : { kind: 'wait', row, reason: 'pod is terminating', until: 'terminated' };
}

function stopPod(
  { stop = 'stop' }: UnregistrationFacts,
  row: Row,
  reason: string,
): UnregistrationAction {
  return { kind: 'stopPod', row, reason, mode: stop, overdue: false };
}
