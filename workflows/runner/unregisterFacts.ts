/**
 * Facts about the unregistration of a runner, and how events change them. Pure; unregisterTable.ts
 * decides on them.
 */
import type { RemovalResult } from '../../core/domain/ciServer.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** Facts about the runner, as its workflow observes them now. */
export interface ObservedFacts {
  readonly ephemeral: boolean;
  /**
   * Whether the CI server would remove the runner while it runs a job, because its response never
   * says busy in time.
   */
  readonly removalEndsJob?: true;
  /** Whether the runner continues when its registration is removed, and must be stopped. */
  readonly outlivesRegistration?: true;
  /**
   * Whether the runner container was observed to start. A container that never started cannot have
   * a job.
   */
  readonly started: boolean;
  /**
   * Whether the pod disappeared without its end being observed. The absence of an observed start
   * proves nothing then.
   */
  readonly endUnobserved?: true;
  /**
   * Whether the container has an exit code, or the pod (this UID) no longer exists. There may never
   * have been a pod.
   */
  readonly ended: boolean;
  readonly exitCode?: number;
  /** Whether a job of this runner was observed to start. */
  readonly hadJob: boolean;
  /**
   * Whether the pod's termination was requested by another party, with a grace period (deletion,
   * eviction).
   */
  readonly terminationRequested: boolean;
  /**
   * Activity reported by the pod itself or by a job event; `unknown` if there is no report. `busy`
   * takes precedence over every response of the CI server.
   */
  readonly observedActivity: 'idle' | 'busy' | 'unknown';
  /**
   * Whether the runner counts as busy because of a job event alone. Its pod reports idle, but that
   * report may be older.
   */
  readonly idleInDoubt?: true;
  /**
   * Whether the registration's id is known (JIT, or the runner was seen online). If such a runner
   * is absent, it was removed and cannot come back.
   */
  readonly wasRegistered: boolean;
  /**
   * Whether the registration deadline has passed. A runner that has not registered by then never
   * will.
   */
  readonly registrationExpired: boolean;
  /**
   * Mode in which the pod may be stopped while it runs a job: cancel `stop` or `force`, Temporal
   * cancellation, or a policy that allows it. Absent if it may not.
   */
  readonly stop?: StopMode;
}

/** Progress since the unregistration began. Changed by {@link applyEvent} only. */
export interface UnregistrationProgress {
  /**
   * Response of the CI server to the last removal, since any other change. `unlisted` while a
   * missing entry proves nothing, `absent` from then on. `failed`: no response is available now.
   */
  readonly removalResult?: RemovalResult | 'failed';
  /**
   * Time at which the registration was proven absent (204, or an absence that counts as proof), or
   * from which there is none to remove (ms since the epoch).
   */
  readonly absentSinceMs?: number;
  /** Last wait that expired without a result, since any other change. */
  readonly expiredWait?: WaitKind;
  /** Whether the pod was read live since then. */
  readonly podRefreshed: boolean;
  /** Mode in which the pod was requested to stop, if it was. */
  readonly stopped?: StopMode;
  /**
   * Time of the first response that did not list the runner, although it could no longer register
   * (ms since the epoch).
   */
  readonly unlistedSinceMs?: number;
  /**
   * Last response, for the verdict. `absentAfterRetry`: absent, but an earlier attempt of Holdfast,
   * whose response was lost, may have removed it.
   */
  readonly removal?: Exclude<RemovalResult, 'unlisted'> | 'absentAfterRetry';
  /**
   * Whether the registration was removed while the runner was running, for the verdict. A runner
   * without a job then ends by itself, with any exit code.
   */
  readonly removedWhileRunning: boolean;
  /**
   * Whether a removal was requested while the runner was running, and its response is not known.
   */
  readonly removalPending: boolean;
}

/** All facts that the unregistration decision table uses. */
export type UnregistrationFacts = ObservedFacts & UnregistrationProgress;
/** Mode of stopping the pod. `stop`: within its grace period. `force`: immediately. */
export type StopMode = 'stop' | 'force';

/**
 * Condition of a wait. Each wait ends by itself if nothing happens.
 *
 * - `stopResponse`: the CI server's response to a removal before a stop
 * - `idleConfirmed`: confirmation that the runner continues to report idle
 * - `settled`: the end of a runner whose registration was removed
 * - `terminated`: the end of a stopped pod
 * - `jobDeadline`: the end of the job
 * - `busyCheck`: the end of a busy ephemeral runner
 * - `absentCheck`: the registration of the runner
 * - `listRecheck`: up-to-date lists of the CI server
 * - `credentialsRetry`: a CI server that responds again
 */
export type WaitKind =
  | 'stopResponse'
  | 'idleConfirmed'
  | 'settled'
  | 'terminated'
  | 'jobDeadline'
  | 'busyCheck'
  | 'absentCheck'
  | 'listRecheck'
  | 'credentialsRetry';

/** Event that changes the progress of an unregistration. */
export type UnregistrationEvent =
  /**
   * @property retried - whether an earlier attempt of the same call may have removed the
   * registration
   * @property listMaxAgeMs - maximum age of the CI server's lists (ms)
   */
  | {
      readonly kind: 'answered';
      readonly answer: RemovalResult;
      readonly retried: boolean;
      readonly atMs: number;
      readonly listMaxAgeMs: number;
    }
  /** A removal was requested and cancelled, because something else changed. */
  | { readonly kind: 'removalCancelled' }
  /** A removal was requested and is no longer retried. */
  | { readonly kind: 'failed' }
  | { readonly kind: 'expiredWait'; readonly wait: WaitKind }
  /**
   * A change that the table must evaluate: the runner ended, a stronger cancel arrived, or its
   * reported activity changed.
   */
  | { readonly kind: 'changed' }
  | { readonly kind: 'podRefreshed' }
  | { readonly kind: 'stopped'; readonly mode: StopMode };

/**
 * Returns the initial progress.
 *
 * @param absentSinceMs - set for a plain command, which has no registration (ms since the epoch)
 */
export function initialProgress(absentSinceMs?: number): UnregistrationProgress {
  return {
    podRefreshed: false,
    removedWhileRunning: false,
    removalPending: false,
    ...omitUndefined({ absentSinceMs }),
  };
}

/** Waits after which the CI server's last response is too old to be used. */
const STALE_AFTER: ReadonlySet<WaitKind> = new Set([
  'settled',
  'jobDeadline',
  'busyCheck',
  'absentCheck',
  'listRecheck',
  'credentialsRetry',
]);

/**
 * Returns the progress after an event.
 *
 * @param facts - facts at the time when the activity or wait that produced the event began
 */
export function applyEvent(
  facts: UnregistrationFacts,
  event: UnregistrationEvent,
): UnregistrationProgress {
  const {
    absentSinceMs,
    stopped,
    removal,
    removedWhileRunning,
    removalPending,
    expiredWait,
    removalResult,
    unlistedSinceMs,
  } = facts;
  const known = {
    ...omitUndefined({ absentSinceMs, stopped, removal, unlistedSinceMs }),
    removedWhileRunning,
    removalPending,
    podRefreshed: false,
  };
  // A removal requested for a running runner may still be executed.
  const unknown = { removalPending: removalPending || !facts.ended };
  switch (event.kind) {
    case 'answered':
      return { ...known, ...omitUndefined({ expiredWait }), ...applyRemovalResult(facts, event) };
    case 'removalCancelled':
      return { ...known, ...unknown };
    case 'failed':
      return {
        ...known,
        ...omitUndefined({ expiredWait }),
        ...unknown,
        removalResult: 'failed',
      };
    case 'expiredWait':
      if (event.wait === 'stopResponse')
        return { ...known, ...unknown, expiredWait: 'stopResponse' };
      return {
        ...known,
        expiredWait: event.wait,
        ...(STALE_AFTER.has(event.wait) ? {} : omitUndefined({ removalResult })),
      };
    case 'changed':
      return known;
    case 'podRefreshed':
      return { ...known, ...omitUndefined({ expiredWait, removalResult }), podRefreshed: true };
    case 'stopped':
      return { ...known, stopped: event.mode };
  }
}

type RemovalResultEvent = Extract<UnregistrationEvent, { kind: 'answered' }>;

function applyRemovalResult(
  facts: UnregistrationFacts,
  event: RemovalResultEvent,
): Partial<UnregistrationProgress> & Pick<UnregistrationProgress, 'removalResult'> {
  if (event.answer === 'unlisted') return applyUnlisted(facts, event);
  const { answer: removalResult, retried, atMs } = event;
  const perhapsByUs =
    removalResult === 'absent' &&
    (retried || facts.removalPending || facts.removal === 'absentAfterRetry');
  // An ephemeral runner removes itself after its job.
  const removedItself = facts.ephemeral && facts.hadJob;
  const lived = !facts.ended || facts.removalPending;
  const removedWhileRunning =
    (removalResult === 'removed' && !facts.ended) || (perhapsByUs && lived && !removedItself);
  return {
    removalResult,
    removal: perhapsByUs ? 'absentAfterRetry' : removalResult,
    removedWhileRunning: facts.removedWhileRunning || removedWhileRunning,
    ...(removalResult === 'busy' ? {} : { absentSinceMs: atMs }),
  };
}

/**
 * Applies a response that does not list the runner. Lists may be outdated. The absence is proven if
 * the runner is still not listed `listMaxAgeMs` after the first such response at a time when it
 * could no longer register (it has ended, or it was online).
 *
 * A runner that was observed to end before its container started cannot have registered. A running
 * one may have started since.
 */
function applyUnlisted(
  facts: UnregistrationFacts,
  { retried, atMs, listMaxAgeMs }: RemovalResultEvent,
): Partial<UnregistrationProgress> & Pick<UnregistrationProgress, 'removalResult'> {
  const { started, ended, endUnobserved, wasRegistered, removalPending } = facts;
  const sinceMs = facts.unlistedSinceMs ?? (ended || wasRegistered ? atMs : undefined);
  if (
    (ended && !started && endUnobserved !== true) ||
    (sinceMs !== undefined && atMs - sinceMs >= listMaxAgeMs)
  )
    return applyRemovalResult(facts, {
      kind: 'answered',
      answer: 'absent',
      retried,
      atMs,
      listMaxAgeMs,
    });
  return {
    removalResult: 'unlisted',
    ...omitUndefined({ unlistedSinceMs: sinceMs }),
    removalPending: removalPending || (retried && !ended),
    ...(retried ? { removal: 'absentAfterRetry' } : {}),
  };
}
