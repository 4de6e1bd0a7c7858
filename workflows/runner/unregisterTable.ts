/**
 * The unregistration decision table: from what is known to the one next step. Pure; order matters, the first matching row decides.
 * What the CI server's answers mean, and why, is in docs/lifecycle.md.
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
   * @property unlessStarted - it was looked at, and its container may have started since: then it is to be decided upon anew
   * @property unlessBusy - the same, and a job may have
   */
  (
    | { readonly kind: 'tearDown'; readonly unlessStarted?: true; readonly unlessBusy?: true }
    /** The registration is for a workflow of its own to remove; then tear down. */
    | { readonly kind: 'handOff' }
    /** Ask the CI server. `retry`: again and again while it calls the runner busy. */
    | { readonly kind: 'remove'; readonly onBusy: 'retry' | 'return' }
    /**
     * @property overdue - it outlived its grace: none is left
     * @property unlessStarted - as of a tear-down
     */
    | {
        readonly kind: 'stopPod';
        readonly mode: StopMode;
        readonly overdue: boolean;
        readonly unlessStarted?: true;
      }
    /** Look at the pod live: nothing is torn down on an old view. */
    | { readonly kind: 'look' }
    | { readonly kind: 'wait'; readonly until: WaitKind }
  );

/** The next step towards "unregistered, and safe to tear down". */
export function decideUnregistration(f: UnregistrationFacts): UnregistrationAction {
  // While the proof is news its own row decides.
  if (f.absentSinceMs !== undefined && f.removalResult === undefined)
    return whenUnregistered(f, '1', 'registration is proven absent');
  // A runner that was told to go may exit with 0 in the middle of its job: only one that was left alone has removed itself for sure.
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
      reason: 'ephemeral runner ended its job with exit code 0: it has removed itself',
    };
  }
  if (!f.ended && f.stop === 'force' && !isStopped(f))
    return stopPod(f, '5', 'forced: the pod goes at once');
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

/** Unregistered: it cannot take another job. Whether the pod may go depends on whether a job can still be running in it. */
function whenUnregistered(f: UnregistrationFacts, row: Row, because: string): UnregistrationAction {
  if (f.ended) return { kind: 'tearDown', row, reason: `${because} and the runner has ended` };
  if (!f.started) {
    // It may have started since it was seen last.
    return f.podRefreshed
      ? {
          kind: 'tearDown',
          row,
          reason: `${because} and the runner container never started`,
          unlessStarted: true,
        }
      : { kind: 'look', row, reason: `${because}; waiting for its container to start` };
  }
  if (f.stop !== undefined) return stopOrAwait(f, row, `${because} and its stop was accepted`);
  if (f.observedActivity === 'idle') return whenIdle(f, row, because);
  if (f.observedActivity === 'busy')
    return awaitJob(f, row, `${because}, but a job is running: it may finish`);
  if (f.expiredWait === 'settled' || f.stopped !== undefined)
    return stopOrAwait(f, row, `${because} and the runner has not ended by itself in time`);
  // A CI server may remove a runner whose job has only just started (docs/lifecycle.md): without the runner's own word the pod may be busy.
  return { kind: 'wait', row, reason: `${because}; the runner ends by itself`, until: 'settled' };
}

/** Where an event alone says that it runs, the pod is looked at again and again: the event of its end may be lost. */
function awaitJob(f: UnregistrationFacts, row: Row, reason: string): UnregistrationAction {
  if (f.idleInDoubt !== true) return { kind: 'wait', row, reason, until: 'jobDeadline' };
  return f.podRefreshed
    ? { kind: 'wait', row, reason, until: 'busyCheck' }
    : { kind: 'look', row, reason: 'a job was told of, and the pod says that it is idle' };
}

/** What it says is a second or two old: a job that came before the removal shows by then, and none can come after it. */
function whenIdle(f: UnregistrationFacts, row: Row, because: string): UnregistrationAction {
  if (f.expiredWait !== 'idleConfirmed')
    return {
      kind: 'wait',
      row,
      reason: `${because}; waiting whether the runner goes on saying that it is idle`,
      until: 'idleConfirmed',
    };
  if (!f.podRefreshed) return { kind: 'look', row, reason: `${because}; is the runner idle?` };
  return {
    kind: 'tearDown',
    row,
    reason: `${because} and the runner itself says it is idle`,
    unlessBusy: true,
  };
}

/** Not in a list that may be old: it may have registered since, or be about to. */
function whenUnlisted(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended) return awaitList();
  if (f.stop !== undefined)
    return stopOrAwait(f, '5', 'CI server does not know the runner yet, and its stop was accepted');
  if (!f.started) {
    // It may have started since it was seen last, and register: it is asked about once more when it has ended.
    return f.podRefreshed
      ? stopUnstarted(f)
      : {
          kind: 'look',
          row: '4a',
          reason: 'CI server does not list the runner; waiting for its container to start',
        };
  }
  if (f.observedActivity === 'busy')
    return awaitJob(f, '4', 'a job is running: that beats any list');
  if (f.wasRegistered) return awaitList();
  if (!f.registrationExpired)
    return {
      kind: 'wait',
      row: '4c',
      reason: 'runner may be about to register',
      until: 'absentCheck',
    };
  const action = whenUnregistered(f, '4b', 'runner did not register within its deadline');
  // It is asked about once more when it cannot register any more: only its end says so.
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
    reason: 'CI server does not list the runner, and its lists may be old: looked for once more',
    until: 'listRecheck',
  };
}

function whenBusy(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended)
    return { kind: 'handOff', row: '8', reason: 'CI server still calls the ended runner busy' };
  if (f.stop !== undefined) return stopOrAwait(f, '5', 'runner is busy and its stop was accepted');
  return f.ephemeral || f.removalEndsJob === true
    ? {
        kind: 'wait',
        row: '6',
        reason: 'runner busy by the word of the CI server: its end wakes this',
        until: 'busyCheck',
      }
    : retryRemovalWhileBusy();
}

/** No failure is a reason to touch a runner that lives; and none may hold up the end of one that does not. */
function whenFailed(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended)
    return {
      kind: 'handOff',
      row: '8',
      reason: 'CI server does not say whether the ended runner is registered',
    };
  if (f.stop !== undefined)
    return stopOrAwait(f, '5', 'CI server does not say, and the stop was accepted');
  return {
    kind: 'wait',
    row: '10',
    reason: 'CI server did not answer the removal: asked again',
    until: 'credentialsRetry',
  };
}

function beforeRemoval(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended) return requestRemoval();
  if (isStopped(f)) return stopOrAwait(f, '5', 'pod is terminating');
  if (f.stop !== undefined) {
    return f.expiredWait === 'patience'
      ? stopPod(f, '5', 'stop accepted and the CI server does not answer: the pod is stopped first')
      : requestRemoval('unregister, then terminate');
  }
  if (f.removalEndsJob === true) return beforeUnguardedRemoval(f);
  if (!f.ephemeral) return retryRemovalWhileBusy();
  // Asking while an ephemeral runner says it is busy can only do harm: a DELETE may be answered 204 under its first minute.
  if (f.observedActivity === 'busy')
    return f.expiredWait === 'busyCheck' && !f.podRefreshed
      ? { kind: 'look', row: '6', reason: 'ephemeral runner busy: is it still?' }
      : {
          kind: 'wait',
          row: '6',
          reason: 'ephemeral runner busy: its end wakes this',
          until: 'busyCheck',
        };
  // That it is busy is told some seconds later.
  return f.observedActivity === 'idle' && f.started && !f.podRefreshed
    ? { kind: 'look', row: '6', reason: 'has it taken a job that nobody has told of yet?' }
    : requestRemoval();
}

/** Only the runner's own word can show that no job would be ended: the answer of the CI server comes too late. */
function beforeUnguardedRemoval(f: UnregistrationFacts): UnregistrationAction {
  if (f.started && f.observedActivity !== 'idle')
    return {
      kind: 'wait',
      row: '6a',
      reason: 'the removal would end a job: the runner is asked about when it is idle or has ended',
      until: 'busyCheck',
    };
  return f.podRefreshed
    ? requestRemoval()
    : { kind: 'look', row: '6a', reason: 'has it taken a job that nobody has told of yet?' };
}

function requestRemoval(
  reason = 'ask the CI server to remove the registration',
): UnregistrationAction {
  return { kind: 'remove', row: '3-11', reason, onBusy: 'return' };
}

/** The job decides, until its own deadline. */
function retryRemovalWhileBusy(): UnregistrationAction {
  return {
    kind: 'remove',
    row: '7',
    reason: 'ask the CI server to remove the static runner, again until its job ends',
    onBusy: 'retry',
  };
}

/** As strongly as it is wanted now? */
function isStopped({ stopped, stop }: UnregistrationFacts): boolean {
  return stopped === 'force' || (stopped === 'stop' && stop !== 'force');
}

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
