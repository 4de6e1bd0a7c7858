/**
 * Facts about the unregistration of a runner, and how events change them. Pure; unregisterTable.ts
 * decides on them.
 */
import type { RemovalResult } from '../../core/domain/ciServer.ts';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';

/** As the life sees its runner now. */
export interface ObservedFacts {
  readonly ephemeral: boolean;
  /** The CI server would remove the runner under its job: its answer never says busy in time. */
  readonly removalEndsJob?: true;
  /** The runner container was seen to start. One that never did cannot hold a job. */
  readonly started: boolean;
  /** It vanished, and nobody saw it go: that it was never seen to start says nothing. */
  readonly endUnobserved?: true;
  /** The container has an exit code, or the pod (this UID) is gone. There may never have been a pod. */
  readonly ended: boolean;
  readonly exitCode?: number;
  /** A job of this runner was seen to start. */
  readonly hadJob: boolean;
  /** Somebody else took the pod away with a goodbye (deletion, eviction). */
  readonly terminationRequested: boolean;
  /** What the pod itself or a job event says; `unknown` when nothing does. `busy` beats every answer of the CI server. */
  readonly observedActivity: 'idle' | 'busy' | 'unknown';
  /** It is busy by a job event alone: its pod said that it is idle, which may be older. */
  readonly idleInDoubt?: true;
  /** We hold the registration's id (JIT, or it was seen online): an absent one was removed and cannot come back. */
  readonly wasRegistered: boolean;
  /** The registration deadline is out: what has not registered by now never will. */
  readonly registrationExpired: boolean;
  /** The pod may be stopped under a job: cancel `stop`/`force`, plain cancellation, or a policy that says so. */
  readonly stop?: StopMode;
}

/** What was heard since the unregistration began. Changed by {@link applyEvent} alone. */
export interface UnregistrationProgress {
  /**
   * The CI server's answer to the last removal, since anything else changed: `unlisted` as long as that proves nothing, from then on `absent`.
   * `failed`: none is to be had now.
   */
  readonly removalResult?: RemovalResult | 'failed';
  /** When the registration was proven gone (204, or an absence that counts), or since when there is none to remove (ms since the epoch). */
  readonly absentSinceMs?: number;
  /** The last wait that came to nothing, since anything else changed. */
  readonly expiredWait?: WaitKind;
  /** The pod was looked at live since then. */
  readonly podRefreshed: boolean;
  /** The pod's stop was asked for, in this way. */
  readonly stopped?: StopMode;
  /** Since when no list has the runner, of which all is over that it could have registered by (ms since the epoch). */
  readonly unlistedSinceMs?: number;
  /** For the verdict: the last answer. `absentAfterRetry`: absent, but an earlier try of ours, whose answer was lost, may have removed it. */
  readonly removal?: Exclude<RemovalResult, 'unlisted'> | 'absentAfterRetry';
  /** For the verdict: the registration was removed under a runner that lived. One without a job ends then by itself, with whatever status. */
  readonly removedWhileRunning: boolean;
  /** A removal was asked for while the runner lived, and its answer is not known. */
  readonly removalPending: boolean;
}

/** All facts that the unregistration decision table uses. */
export type UnregistrationFacts = ObservedFacts & UnregistrationProgress;
/** How the pod is stopped. `stop`: within its grace period. `force`: at once. */
export type StopMode = 'stop' | 'force';

/**
 * What is waited for, and ends by itself if nothing comes:
 * `patience`: the CI server's answer to a stop; `idleConfirmed`: whether the runner goes on saying that it is idle; `settled`: that a runner
 * whose registration is gone ends; `terminated`: that a stopped pod ends; `jobDeadline`: the job's end; `busyCheck`: a busy ephemeral runner's
 * end; `absentCheck`: that a runner registers; `listRecheck`: that the CI server's lists are of today; `credentialsRetry`: that the CI server
 * answers again.
 */
export type WaitKind =
  | 'patience'
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
   * @property retried - an earlier try of the same call may have done it
   * @property listMaxAgeMs - how old the CI server's lists may be
   */
  | {
      readonly kind: 'answered';
      readonly answer: RemovalResult;
      readonly retried: boolean;
      readonly atMs: number;
      readonly listMaxAgeMs: number;
    }
  /** A removal was asked for and called off, because something else changed. */
  | { readonly kind: 'calledOff' }
  /** A removal was asked for, and is not tried any more. */
  | { readonly kind: 'failed' }
  | { readonly kind: 'expiredWait'; readonly wait: WaitKind }
  /** Something that the table must hear of: the runner ended, a stronger cancel came, its own signal changed. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'looked' }
  | { readonly kind: 'stopped'; readonly mode: StopMode };

/** Nothing yet. @param absentSinceMs - given for a plain command, which nobody had to know */
export function initialProgress(absentSinceMs?: number): UnregistrationProgress {
  return {
    podRefreshed: false,
    removedWhileRunning: false,
    removalPending: false,
    ...omitUndefined({ absentSinceMs }),
  };
}

/** After these the CI server's last answer is too old to go by. */
const STALE_AFTER: ReadonlySet<WaitKind> = new Set([
  'settled',
  'jobDeadline',
  'busyCheck',
  'absentCheck',
  'listRecheck',
  'credentialsRetry',
]);

/** What is known after the news. @param facts - as they were when what the news is about began */
export function applyEvent(
  facts: UnregistrationFacts,
  news: UnregistrationEvent,
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
  // What was asked of a runner that lives may still be carried out.
  const unknown = { removalPending: removalPending || !facts.ended };
  switch (news.kind) {
    case 'answered':
      return { ...known, ...omitUndefined({ expiredWait }), ...applyRemovalResult(facts, news) };
    case 'calledOff':
      return { ...known, ...unknown };
    case 'failed':
      return {
        ...known,
        ...omitUndefined({ expiredWait }),
        ...unknown,
        removalResult: 'failed',
      };
    case 'expiredWait':
      if (news.wait === 'patience') return { ...known, ...unknown, expiredWait: 'patience' };
      return {
        ...known,
        expiredWait: news.wait,
        ...(STALE_AFTER.has(news.wait) ? {} : omitUndefined({ removalResult })),
      };
    case 'changed':
      return known;
    case 'looked':
      return { ...known, ...omitUndefined({ expiredWait, removalResult }), podRefreshed: true };
    case 'stopped':
      return { ...known, stopped: news.mode };
  }
}

type RemovalResultEvent = Extract<UnregistrationEvent, { kind: 'answered' }>;

function applyRemovalResult(
  facts: UnregistrationFacts,
  news: RemovalResultEvent,
): Partial<UnregistrationProgress> & Pick<UnregistrationProgress, 'removalResult'> {
  if (news.answer === 'unlisted') return applyUnlisted(facts, news);
  const { answer: removalResult, retried, atMs } = news;
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
 * A list may be old: it proves that a runner is absent only if it was asked for its age after whatever that runner could register by was
 * over: it ended, or it was online. One that was seen to end before its container started cannot have registered; one that lives may have started since.
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
