/**
 * Activity proxies of the workflows: task queues, timeouts, retries and the summaries shown to
 * operators.
 */
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
  type ActivityOptions,
} from '@temporalio/workflow';
import {
  RETRY_BACKOFF,
  type HoldfastActivities,
  type WithLocation,
  type PodDeletion,
  type SetNotification,
  type StartRunnersInput,
  type TearDownInput,
} from '../../core/activities/index.ts';
import { ciTaskQueue, clusterTaskQueue, listenTaskQueue } from '../../core/contract/index.ts';
import type { Scope } from '../../core/domain/ciServer.ts';
import { fairnessKey } from '../../core/domain/fairnessKey.ts';
import { priorityOffset } from '../../core/domain/setPriority.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';

/**
 * Retry policy of calls that are retried until they succeed. It applies after an activity attempt
 * whose worker died: the next attempt follows soon, however many workers died. Failures of the
 * attempts themselves define their own delay (activities/shared/failures.ts).
 */
const RETRY = {
  initialInterval: RETRY_BACKOFF.initialMs,
  backoffCoefficient: 2,
  maximumInterval: RETRY_BACKOFF.maxMs,
} as const;

/**
 * Retry policy of the session of a scale set, which is one activity for almost an hour. The delay
 * does not grow with the number of workers that died meanwhile: no worker reads the jobs until then.
 */
const SESSION_RETRY = { initialInterval: RETRY_BACKOFF.initialMs, backoffCoefficient: 1 } as const;

/** Time after which the death of a worker that runs a short activity is detected. */
const HEARTBEAT_TIMEOUT = '15s';
/**
 * The same for a provisioning, whose completion may be deferred for 12 s
 * (activities/watcher/deferredCompletions.ts).
 */
const PROVISIONING_HEARTBEAT_TIMEOUT = '20s';
/**
 * The same for the session of a scale set, whose jobs wait until another worker continues it. If a
 * worker loses its connection to Temporal, the first retry may be sent to that worker, so that this
 * time passes twice.
 */
const SESSION_HEARTBEAT_TIMEOUT = '12s';

/**
 * Priority keys. Removals precede provisioning, because they free what other calls wait for. The
 * queue check comes last.
 */
const PRIORITY = { remove: 2, provision: 4, queueCheck: 5 } as const;

interface ActivityCallOptions {
  readonly summary: string;
  /** Maximum time including retries (ms). Unlimited if absent. */
  readonly withinMs?: number;
}

/**
 * Returns the local activities of the first step: the input is validated and completed with the
 * current defaults. They fail with `InvalidInput`.
 *
 * As for {@link localTearDown}: in the workflow task in which a local activity completes, the
 * workflow's clock during replay shows the time at which the activity completed, not the time at
 * which the task began. So the clock must not decide anything in that task. The runner evaluates
 * deadlines only after a call of another kind, and the set uses the times that its activities
 * report.
 */
export function admissionActivities(): Pick<
  HoldfastActivities,
  'admitRunner' | 'admitDeregistration' | 'admitRerun' | 'admitSet' | 'admitListener'
> {
  return proxyLocalActivities<HoldfastActivities>({ startToCloseTimeout: '10s' });
}

/**
 * Runs a short teardown as a local activity: in the worker that has the workflow, as part of its
 * workflow task. It has one attempt only; {@link clusterActivities} do what it did not complete.
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
 * Starts a few runners of a set, in the worker that has the set. It has one attempt only; {@link
 * temporalActivities} do what it did not complete.
 */
export async function localStartRunners(
  input: StartRunnersInput,
): ReturnType<HoldfastActivities['startRunners']> {
  return await proxyLocalActivities<HoldfastActivities>({
    startToCloseTimeout: '5s',
    retry: { maximumAttempts: 1 },
  }).startRunners(input);
}

/**
 * Maximum time to notify a set, including retries (ms). All the time, the runner's workflow task has
 * a slot of the worker, and a set that takes no more events may have thousands of runners.
 */
const NOTIFY_SET_MS = 30_000;

/**
 * Notifies a set about its runner, in the worker that has the workflow and as part of its workflow
 * task, which does not complete before Temporal has stored the signal. So it costs one event and no
 * task of its own. If the worker dies, the next worker sends it again.
 *
 * Fails if the set has not taken the event in time. The set then finds the change in its next list
 * of the runners.
 */
export async function notifySet(word: SetNotification): Promise<void> {
  await proxyLocalActivities<HoldfastActivities>({
    startToCloseTimeout: '10s',
    scheduleToCloseTimeout: NOTIFY_SET_MS,
    retry: { initialInterval: '200ms', maximumInterval: '10s' },
  }).notifySet(word);
}

/** Maximum time of an observation of the cluster, including retries (ms). The next one follows. */
const OBSERVATION_MS = 30_000;

/** Returns the observation of the cluster for a set. */
export function observationActivities(): Pick<HoldfastActivities, 'observeCapacity'> {
  return proxyActivities<HoldfastActivities>({
    taskQueue: clusterTaskQueue(workflowInfo().taskQueue),
    summary: 'Read which runners have a node',
    scheduleToCloseTimeout: OBSERVATION_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: RETRY,
  });
}

/** Returns the activities that need only the cluster. */
export function clusterActivities(
  options: ActivityCallOptions,
): Pick<
  HoldfastActivities,
  'findProvisioned' | 'getPod' | 'tearDown' | 'fenceClaims' | 'awaitClaims'
> {
  return proxyActivities<HoldfastActivities>(clusterOptions(options, HEARTBEAT_TIMEOUT));
}

/** Returns the provisioning of a runner without a CI server. */
export function clusterProvisioning(
  options: ActivityCallOptions,
): Pick<HoldfastActivities, 'provision'> {
  return proxyActivities<HoldfastActivities>(
    clusterOptions(options, PROVISIONING_HEARTBEAT_TIMEOUT),
  );
}

function clusterOptions(
  options: ActivityCallOptions,
  heartbeatTimeout: '15s' | '20s',
): ActivityOptions {
  return {
    taskQueue: clusterTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1m',
    heartbeatTimeout,
    retry: RETRY,
    ...common(options),
  };
}

/**
 * Returns the activities that call the CI server: on the rate-limited task queue of the credential,
 * with fairness between scopes.
 */
export function ciActivities(
  credential: string,
  scope: Scope,
  kind: keyof typeof PRIORITY,
  options: ActivityCallOptions,
): Pick<HoldfastActivities, 'provision' | 'awaitRunnerOnline' | 'removeRegistration'> {
  return proxyActivities<HoldfastActivities>({
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    startToCloseTimeout: '3m',
    heartbeatTimeout: kind === 'provision' ? PROVISIONING_HEARTBEAT_TIMEOUT : HEARTBEAT_TIMEOUT,
    retry: RETRY,
    // Wait for the response of a call in progress, because it may have changed something. A call
    // that is waiting for its next retry is cancelled immediately.
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

/** Maximum time that a rerun waits for the end of its workflow run and for the CI server. */
const RERUN_TIMEOUT = '12h';
/** Maximum time for the request that ends a workflow run early. Later, GitHub ends the job itself. */
export const FORCE_CANCEL_MS = 5 * 60_000;

/**
 * Returns the activities that rerun a lost job: on the rate-limited task queue of the credential. A
 * check is an attempt, so a long wait adds no events to the history.
 */
export function rerunActivities(
  credential: string,
  scope: Scope,
  summary: string,
  within: string | number = RERUN_TIMEOUT,
): Pick<HoldfastActivities, 'findLostJob' | 'awaitRerun' | 'forceCancelRun' | 'requestRerun'> {
  return proxyActivities<HoldfastActivities>({
    summary,
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    startToCloseTimeout: '2m',
    scheduleToCloseTimeout: within,
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: RETRY,
    priority: { priorityKey: PRIORITY.queueCheck, fairnessKey: fairnessKey(scope.name) },
  });
}

/**
 * Returns the wait for a pod under its own activity id. Retries are re-syncs, not failures: each
 * attempt reads the pod live.
 */
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

/** Maximum number of attempts of a queue check. The next check follows soon anyway. */
const QUEUE_CHECK_TRIES = 2;

/**
 * Returns the activities that need only the worker. These are not local activities, because two
 * concurrent local activities do not replay identically.
 */
export function workerActivities(
  summary: string,
): Pick<
  HoldfastActivities,
  'admitRunner' | 'admitJob' | 'admitSet' | 'admitSetCommand' | 'evaluateSchedules' | 'getTime'
> {
  return proxyActivities<HoldfastActivities>({ summary, startToCloseTimeout: '10s', retry: RETRY });
}

/**
 * Returns the activities that call Temporal. They are retried until they succeed: without Temporal,
 * the calling workflow does not run either.
 */
export function temporalActivities(
  summary: string,
): Pick<
  HoldfastActivities,
  | 'startRunners'
  | 'drainRunners'
  | 'listRunners'
  | 'findEndedRunners'
  | 'rerouteJobs'
  | 'startListener'
> {
  return proxyActivities<HoldfastActivities>({
    summary,
    startToCloseTimeout: '2m',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: RETRY,
  });
}

/**
 * Returns the check of the CI server's jobs: on the rate-limited task queue of the credential, with
 * fairness between scopes.
 */
export function queueCheckActivities(
  credential: string,
  scope: Scope,
): Pick<HoldfastActivities, 'checkQueuedJobs'> {
  return proxyActivities<HoldfastActivities>({
    summary: 'Check for queued jobs',
    taskQueue: ciTaskQueue(workflowInfo().taskQueue, credential),
    startToCloseTimeout: '2m',
    scheduleToCloseTimeout: '5m',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: { ...RETRY, maximumAttempts: QUEUE_CHECK_TRIES },
    priority: { priorityKey: PRIORITY.queueCheck, fairnessKey: fairnessKey(scope.name) },
  });
}

/**
 * Maximum number of attempts of a sweep. A call that is rejected now may succeed some seconds
 * later; otherwise the next sweep repeats it.
 */
const SWEEP_TRIES = 3;

/**
 * Returns the sweep activity, which runs on the task queue of the cluster. It may take long, and
 * reports its progress in heartbeats.
 */
export function sweepActivities(): Pick<HoldfastActivities, 'sweepPlace'> {
  return proxyActivities<HoldfastActivities>({
    summary: 'Find and repair orphaned objects',
    taskQueue: clusterTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1h',
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: { ...RETRY, maximumAttempts: SWEEP_TRIES },
  });
}

/**
 * Returns the activities that hold the session of a scale set. They have a task queue of their own,
 * because each occupies a slot all the time.
 */
export function listenActivities(
  options: ActivityCallOptions,
): Pick<HoldfastActivities, 'listen' | 'closeScaleSet'> {
  return proxyActivities<HoldfastActivities>({
    taskQueue: listenTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '1h',
    heartbeatTimeout: SESSION_HEARTBEAT_TIMEOUT,
    retry: SESSION_RETRY,
    // The session is closed before another one is opened.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    ...common(options),
  });
}

/** Result of a call that may be interrupted. */
export type CallResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  | {
      readonly kind: 'failed';
      readonly type: string;
      readonly message: string;
      readonly timedOut: boolean;
      /**
       * Whether the timeout expired before any attempt had failed, which means that the call was
       * still waiting for its turn.
       */
      readonly untried: boolean;
    }
  | {
      readonly kind: 'interrupted';
      /**
       * Type of the failure with which the call itself ended. Absent if it is unknown what its last
       * attempt has done or is still doing.
       */
      readonly lastFailure?: string;
    };

/** Limits of a call that may be interrupted. */
export interface InterruptOptions {
  /** Also interrupts the call after this time (ms). @default unlimited */
  readonly timeoutMs?: number | undefined;
  /**
   * Returns true when not even the outcome of the interrupted call is awaited: a worker learns of
   * the cancellation with its next heartbeat only.
   * @default the outcome is awaited
   */
  readonly abandon?: () => boolean;
}

/**
 * Runs a call until it completes or `interrupt` returns true. Then the call is cancelled and its
 * outcome awaited. That outcome counts only if it is a result: the failure of a cancelled call
 * (rejected at that moment, or its worker died) does not show whether it would have succeeded.
 */
export async function callUnless<T>(
  interrupt: () => boolean,
  call: () => Promise<T>,
  { timeoutMs, abandon }: InterruptOptions = {},
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
  if (timeoutMs === undefined) await condition(ready);
  else await condition(ready, timeoutMs);
  if (settled) return await outcome;
  scope.cancel();
  if (abandon !== undefined) await condition(() => settled || abandon());
  return settled || abandon === undefined ? afterInterrupt(await outcome) : { kind: 'interrupted' };
}

/**
 * Returns the outcome of an interrupted call, based on its last result. A failure that is a
 * response keeps its type. A timeout is not a response: the last attempt may still be running.
 */
export function afterInterrupt<T>(last: CallResult<T>): CallResult<T> {
  if (last.kind !== 'failed') return last;
  return last.timedOut ? { kind: 'interrupted' } : { kind: 'interrupted', lastFailure: last.type };
}

/**
 * Converts the result or failure of a call to data. Failures that do not come from an activity are
 * defects and are rethrown.
 */
export async function toCallResult<T>(promise: Promise<T>): Promise<CallResult<T>> {
  try {
    return { kind: 'done', value: await promise };
  } catch (error) {
    // The failure of a local activity is not wrapped in an ActivityFailure.
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
