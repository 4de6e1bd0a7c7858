/** How the workflows call their activities: queues, timeouts, retries and what an operator reads beside each. */
import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  TimeoutFailure,
  condition,
  proxyActivities,
  proxyLocalActivities,
  workflowInfo,
} from '@temporalio/workflow';
import {
  RETRY_BACKOFF,
  type HoldfastActivities,
  type WithLocation,
  type PodDeletion,
  type SetNotification,
  type TearDownInput,
} from '../../core/activities/index.ts';
import { ciTaskQueue, clusterTaskQueue } from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { priorityOffset } from '../../core/domain/setPriority.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';

/**
 * The pace of whatever is tried until it succeeds, after a try that its worker did not live to end: another has it soon, however many died. What a
 * try itself met with names its own pace (activities/shared/failures.ts).
 */
const RETRY = {
  initialInterval: RETRY_BACKOFF.initialMs,
  backoffCoefficient: 2,
  maximumInterval: RETRY_BACKOFF.maxMs,
} as const;

/** A worker that dies under a short activity is noticed after this long. */
const HEARTBEAT_TIMEOUT = '15s';

/** Removing comes before provisioning: what ends frees what others wait for. The check of a queue comes after both. */
const PRIORITY = { remove: 2, provision: 4, queueCheck: 5 } as const;

interface ActivityCallOptions {
  readonly summary: string;
  /** Gives up after this long, retries included; never when absent. */
  readonly withinMs?: number;
}

/**
 * The first step: the input is checked, and completed with the defaults of today. Rejects with `InvalidInput`.
 *
 * A local activity, as {@link localTearDown}: in the workflow task in which one ends, the workflow's clock says in a replay when the activity
 * ended, not when the task began. So nothing is decided by the clock in that task: the runner's comes to deadlines only after a call of
 * another kind, and the set goes by the times that its activities tell.
 */
export function admissionActivities(): Pick<
  HoldfastActivities,
  'admitRunner' | 'admitDeregistration' | 'admitSet'
> {
  return proxyLocalActivities<HoldfastActivities>({ startToCloseTimeout: '10s' });
}

/**
 * A tear-down that is soon done: in the worker that has the workflow, as a part of its task. It is tried once; what it did not do is for
 * {@link clusterActivities}.
 */
export async function localTearDown(
  input: WithLocation<TearDownInput>,
): Promise<PodDeletion | PodSnapshot> {
  return await proxyLocalActivities<HoldfastActivities>({
    startToCloseTimeout: '10s',
    retry: { maximumAttempts: 1 },
  }).tearDown(input);
}

/**
 * Tells a set of its runner: in the worker that has the workflow, as a part of its task, which does not end before Temporal has the news. So
 * it costs one event and no task of its own, and is told again by the next worker if this one dies with it.
 */
export async function notifySet(word: SetNotification): Promise<void> {
  await proxyLocalActivities<HoldfastActivities>({
    startToCloseTimeout: '10s',
    retry: { initialInterval: '200ms', maximumInterval: '10s' },
  }).notifySet(word);
}

/** Calls that need only the cluster. */
export function clusterActivities(
  options: ActivityCallOptions,
): Pick<
  HoldfastActivities,
  'provision' | 'findProvisioned' | 'getPod' | 'tearDown' | 'fenceClaims' | 'awaitClaims'
> {
  return proxyActivities<HoldfastActivities>({
    taskQueue: clusterTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1m',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: RETRY,
    ...common(options),
  });
}

/** Calls to the CI server: on the rate-limited queue of the credential, in turns between scopes. */
export function ciActivities(
  credential: string,
  scope: Scope,
  kind: keyof typeof PRIORITY,
  options: ActivityCallOptions,
): Pick<HoldfastActivities, 'provision' | 'awaitRunnerOnline' | 'removeRegistration'> {
  return proxyActivities<HoldfastActivities>({
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    startToCloseTimeout: '3m',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: RETRY,
    // The answer of a call that is under way is worth waiting for: it may have changed the world. One that backs off is cancelled at once.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    priority: {
      priorityKey:
        kind === 'provision'
          ? PRIORITY.provision + priorityOffset(workflowInfo().priority?.priorityKey)
          : PRIORITY[kind],
      fairnessKey: fairnessKey(scope.name),
    },
    ...common(options),
  });
}

/** A wait for the pod under its own activity id. Attempts are re-syncs, not failures: the next one looks live again. */
export function podWaitActivities(
  activityId: string,
  resyncMs: number,
  options: ActivityCallOptions,
): Pick<HoldfastActivities, 'awaitPod'> {
  return proxyActivities<HoldfastActivities>({
    activityId,
    startToCloseTimeout: resyncMs,
    retry: { initialInterval: '1s', backoffCoefficient: 1 },
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    ...common(options),
  });
}

function common({ summary, withinMs }: ActivityCallOptions): {
  summary: string;
  scheduleToCloseTimeout?: number;
} {
  return withinMs === undefined
    ? { summary }
    : { summary, scheduleToCloseTimeout: Math.max(1, withinMs) };
}

/** The next look is never far away. */
const QUEUE_CHECK_TRIES = 2;

/** Calls that need only the worker. No local activities: two at once are not the same in every replay. */
export function workerActivities(
  summary: string,
): Pick<
  HoldfastActivities,
  'admitRunner' | 'admitJob' | 'admitSet' | 'admitSetCommand' | 'evaluateSchedules' | 'getTime'
> {
  return proxyActivities<HoldfastActivities>({ summary, startToCloseTimeout: '10s', retry: RETRY });
}

/** Calls to Temporal itself. They are tried until they succeed: without Temporal who asks does not run either. */
export function temporalActivities(
  summary: string,
): Pick<
  HoldfastActivities,
  'startRunners' | 'drainRunners' | 'listRunners' | 'findEndedRunners' | 'rerouteJobs'
> {
  return proxyActivities<HoldfastActivities>({
    summary,
    startToCloseTimeout: '2m',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: RETRY,
  });
}

/** The look at the CI server's jobs: on the rate-limited queue of the credential, in turns between scopes. */
export function queueCheckActivities(
  credential: string,
  scope: Scope,
): Pick<HoldfastActivities, 'checkQueuedJobs'> {
  return proxyActivities<HoldfastActivities>({
    summary: 'look for queued jobs, in case an event was lost',
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    startToCloseTimeout: '2m',
    scheduleToCloseTimeout: '5m',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: { ...RETRY, maximumAttempts: QUEUE_CHECK_TRIES },
    priority: { priorityKey: PRIORITY.queueCheck, fairnessKey: fairnessKey(scope.name) },
  });
}

/** Tries of a sweep: what the world refuses now it may grant in some seconds, else the next sweep asks again. */
const SWEEP_TRIES = 3;

/** The sweep: where the cluster is. It may be long, and says what it is at. */
export function sweepActivities(): Pick<HoldfastActivities, 'sweepPlace'> {
  return proxyActivities<HoldfastActivities>({
    summary: 'look at workflows, pods and registrations, and repair what disagrees',
    taskQueue: clusterTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1h',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: { ...RETRY, maximumAttempts: SWEEP_TRIES },
  });
}

/** How a call ended that may be interrupted. */
export type CallResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  | {
      readonly kind: 'failed';
      readonly type: string;
      readonly message: string;
      readonly timedOut: boolean;
      /** Its time ran out, and no try of it had failed before: it was still waiting for its turn. */
      readonly untried: boolean;
    }
  | {
      readonly kind: 'interrupted';
      /** Type of the failure with which the call itself left off; absent when nobody knows what its last try has done, or still does. */
      readonly lastFailure?: string;
    };

/**
 * Runs a call until it is done or `interrupt` holds; then it is cancelled, and its last word awaited. That counts only when it is a result:
 * how a call failed that was called off (refused in that moment, or its worker gone) says nothing about whether it would have been done.
 * @param patienceMs - interrupt after this long, too
 */
export async function callUnless<T>(
  interrupt: () => boolean,
  call: () => Promise<T>,
  patienceMs?: number,
): Promise<CallResult<T>> {
  let settled = false;
  const scope = new CancellationScope();
  const outcome = scope
    .run(async () => await toCallResult(call()))
    .then((called) => {
      settled = true;
      return called;
    });
  const ready = () => settled || interrupt();
  if (patienceMs === undefined) await condition(ready);
  else await condition(ready, patienceMs);
  if (settled) return await outcome;
  scope.cancel();
  return afterInterrupt(await outcome);
}

/**
 * Returns what an interrupted call came to, by its last answer. A failure with an answer keeps its type. A timeout is no answer: the last
 * try may still be at work.
 */
export function afterInterrupt<T>(last: CallResult<T>): CallResult<T> {
  if (last.kind !== 'failed') return last;
  return last.timedOut ? { kind: 'interrupted' } : { kind: 'interrupted', lastFailure: last.type };
}

/** A call's result or failure as data. Failures that are no activity's are defects and thrown on. */
export async function toCallResult<T>(promise: Promise<T>): Promise<CallResult<T>> {
  try {
    return { kind: 'done', value: await promise };
  } catch (error) {
    // A local activity's comes as it is, without an ActivityFailure around it.
    const cause = error instanceof ActivityFailure ? error.cause : error;
    if (!(
      error instanceof ActivityFailure ||
      cause instanceof ApplicationFailure ||
      cause instanceof TimeoutFailure ||
      cause instanceof CancelledFailure
    ))
      throw error;
    const timeout = cause instanceof TimeoutFailure ? cause : undefined;
    const root = timeout?.cause ?? cause;
    if (root instanceof ApplicationFailure)
      return {
        kind: 'failed',
        type: root.type ?? 'Unknown',
        message: root.message,
        timedOut: timeout !== undefined,
        untried: false,
      };
    return timeout === undefined
      ? { kind: 'interrupted' }
      : {
          kind: 'failed',
          type: 'Timeout',
          message: timeout.message,
          timedOut: true,
          untried: timeout.cause === undefined,
        };
  }
}
