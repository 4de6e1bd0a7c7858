/**
 * The unregistration decision table: from what is known to the one next step. Pure; order matters, the first matching row decides.
 * What the CI server's answers mean, and why, is in docs/lifecycle.md.
 */
import type { RemovalAnswer } from '../../core/domain/ciServer.ts';

export interface UnregistrationFacts {
  /** The registration was proven gone earlier in this life (204, or an absence that counts). */
  readonly proven: boolean;
  readonly ephemeral: boolean;
  /** The runner container was seen to start. One that never did cannot hold a job. */
  readonly started: boolean;
  /** The container has an exit code, or the pod (this UID) is gone. There may never have been a pod. */
  readonly ended: boolean;
  readonly exitCode?: number;
  /** A job of this runner was seen to start. */
  readonly sawJob: boolean;
  /** Somebody else took the pod away with a goodbye (deletion, eviction). */
  readonly toldToGo: boolean;
  /** It went on saying that it is idle for long enough after its registration was gone. */
  readonly idleConfirmed: boolean;
  /** What the pod itself or a job event says; `unknown` when nothing does. `busy` beats every answer of the CI server. */
  readonly ownSignal: 'idle' | 'busy' | 'unknown';
  /** We hold the registration's id (JIT, or it was seen online): an absent one was removed and cannot come back. */
  readonly heldId: boolean;
  /** The registration deadline is out: what has not registered by now never will. */
  readonly registrationOver: boolean;
  readonly answer?: RemovalAnswer;
  /** The pod may be stopped under a job: cancel `stop`/`force`, plain cancellation, or a policy that says so. */
  readonly stop?: 'stop' | 'force';
  /** The CI server did not answer within the patience of a stop. */
  readonly patienceOver: boolean;
  /** The pod's graceful stop was asked for already. */
  readonly stopRequested: boolean;
  /** The runner has not ended by itself within its time after its registration was gone. */
  readonly settled: boolean;
}

export type UnregistrationAction =
  | { readonly kind: 'tearDown'; readonly row: string; readonly why: string }
  | { readonly kind: 'askRemoval'; readonly row: string; readonly why: string }
  | { readonly kind: 'stopPod'; readonly row: string; readonly why: string }
  | { readonly kind: 'waitEnded'; readonly row: string; readonly why: string; readonly until: 'settled' | 'busyRecheck' | 'terminated' | 'jobDeadline' | 'idleConfirmed' }
  | { readonly kind: 'lookAgain'; readonly row: string; readonly why: string }
  | { readonly kind: 'handOff'; readonly row: string; readonly why: string };

/** The next step towards "unregistered, and safe to tear down". */
export function decideUnregistration(f: UnregistrationFacts): UnregistrationAction {
  if (f.proven) return whenUnregistered(f, '1', 'registration is proven absent');
  // A runner that was told to go may exit with 0 in the middle of its job: only one that was left alone has removed itself for sure.
  if (f.ephemeral && f.ended && f.exitCode === 0 && f.sawJob && f.stop === undefined && !f.stopRequested && !f.toldToGo) {
    return { kind: 'tearDown', row: '2', why: 'ephemeral runner ended its job with exit code 0: it has removed itself' };
  }
  if (!f.ended && f.stop === 'force' && !f.stopRequested) return { kind: 'stopPod', row: '5', why: 'forced: the pod goes at once' };
  if (f.answer === undefined) return whenUnanswered(f);
  switch (f.answer) {
    case 'removed':
      return whenUnregistered(f, '3', 'CI server removed the registration');
    case 'absent':
      return whenAbsent(f);
    case 'busy':
      return whenBusy(f);
  }
}

/** Unregistered: it cannot take another job. Whether the pod may go depends on whether a job can still be running in it. */
function whenUnregistered(f: UnregistrationFacts, row: string, because: string): UnregistrationAction {
  if (f.ended) return { kind: 'tearDown', row, why: `${because} and the runner has ended` };
  if (!f.started) return { kind: 'tearDown', row, why: `${because} and the runner container never started` };
  if (f.stop !== undefined) return stopOrAwait(f, row, `${because} and its stop was accepted`);
  // What it says is a second or two old: a job that came before the removal shows by then, and none can come after it.
  if (f.ownSignal === 'idle' && !f.idleConfirmed) return { kind: 'waitEnded', row, why: `${because}; does the runner go on saying that it is idle?`, until: 'idleConfirmed' };
  if (f.ownSignal === 'idle') return { kind: 'tearDown', row, why: `${because} and the runner itself says it is idle` };
  if (f.settled && f.ownSignal === 'unknown') return stopOrAwait(f, row, `${because} and the runner has not ended by itself in time`);
  // GitHub has been seen to answer 204 for up to a minute after a job had started: without the runner's own word the pod may be busy.
  return f.ownSignal === 'busy'
    ? { kind: 'waitEnded', row, why: `${because}, but a job is running: it may finish`, until: 'jobDeadline' }
    : { kind: 'waitEnded', row, why: `${because}; the runner ends by itself`, until: 'settled' };
}

function whenAbsent(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended || f.heldId || !f.started) return whenUnregistered(f, '4a', 'CI server does not know the runner');
  if (f.stop !== undefined) return stopOrAwait(f, '5', 'CI server does not know the runner yet, and its stop was accepted');
  if (f.ownSignal === 'busy') return { kind: 'waitEnded', row: '4', why: 'a job is running: that beats any 404', until: 'jobDeadline' };
  if (f.registrationOver) return whenUnregistered(f, '4b', 'runner did not register within its deadline');
  return { kind: 'lookAgain', row: '4c', why: 'runner may be about to register' };
}

function whenBusy(f: UnregistrationFacts): UnregistrationAction {
  if (f.ended) return { kind: 'handOff', row: '8', why: 'CI server still calls the ended runner busy' };
  if (f.stop !== undefined) return stopOrAwait(f, '5', 'runner is busy and its stop was accepted');
  return f.ephemeral
    ? { kind: 'waitEnded', row: '6', why: 'ephemeral runner busy (422): its end wakes this', until: 'busyRecheck' }
    : { kind: 'askRemoval', row: '7', why: 'static runner busy (422): retried until the job ends' };
}

function whenUnanswered(f: UnregistrationFacts): UnregistrationAction {
  if (!f.ended && f.stop !== undefined) {
    if (f.stopRequested) return { kind: 'waitEnded', row: '5', why: 'pod is terminating', until: 'terminated' };
    if (f.patienceOver) return { kind: 'stopPod', row: '5', why: 'stop accepted and the CI server does not answer: the pod is stopped first' };
    return { kind: 'askRemoval', row: '3-11', why: 'unregister, then terminate' };
  }
  // Asking while an ephemeral runner says it is busy can only do harm: a DELETE may be answered 204 under its first minute.
  if (!f.ended && f.ephemeral && f.ownSignal === 'busy') return { kind: 'waitEnded', row: '6', why: 'ephemeral runner busy: its end wakes this', until: 'busyRecheck' };
  return { kind: 'askRemoval', row: '3-11', why: 'ask the CI server to remove the registration' };
}

function stopOrAwait(f: UnregistrationFacts, row: string, why: string): UnregistrationAction {
  return f.stopRequested ? { kind: 'waitEnded', row, why: 'pod is terminating', until: 'terminated' } : { kind: 'stopPod', row, why };
}
