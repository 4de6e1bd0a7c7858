/**
 * Conditions of a pod that a runner workflow waits for. All are one-shot and monotonic, so a late
 * completion is never wrong. Pure.
 */
import type { PodSnapshot } from './pod.ts';

/** Conditions of a pod that a workflow can wait for; see {@link conditionMet}. */
export const POD_CONDITIONS = ['online', 'ended', 'deleted'] as const;
/** Condition of a pod that a workflow can wait for. */
export type PodCondition = (typeof POD_CONDITIONS)[number];

/**
 * Time for which image problems may be transient, such as a failure of the registry (ms), from when
 * they were first seen. It does not apply to an invalid name.
 */
export const IMAGE_PROBLEM_GRACE_MS = 30_000;
/**
 * Time after the end of its grace period (ms) after which a terminating pod that still exists has
 * lost its kubelet.
 */
export const TERMINATION_OVERDUE_MS = 60_000;

/**
 * Maximum difference between the clocks of two machines that must not end anything early (ms). A
 * time of another clock counts only so much later.
 */
export const MAX_CLOCK_SKEW_MS = 2 * 60_000;

/**
 * Returns the activity ID of a wait. The name of the pod is unique per attempt, so a late
 * completion can never complete another wait.
 */
export function waitActivityId(condition: PodCondition, podName: string): string {
  return `${condition}/${podName}`;
}

/** Parses an activity ID of {@link waitActivityId}. Returns `undefined` for another activity. */
export function parseWaitActivityId(
  activityId: string,
): { condition: PodCondition; podName: string } | undefined {
  const [head, podName, ...rest] = activityId.split('/');
  const condition = POD_CONDITIONS.find((candidate) => candidate === head);
  return condition === undefined || podName === undefined || podName === '' || rest.length > 0
    ? undefined
    : { condition, podName };
}

/**
 * Returns whether the condition holds. `online`: the pod reports it, or its container runs and the
 * CI server must be queried; also if the pod will never be online. `ended`: see
 * {@link PodSnapshot.ended}; also if the node does not respond anymore.
 */
export function conditionMet(condition: PodCondition, pod: PodSnapshot, nowMs: number): boolean {
  const due = conditionDueAtMs(condition, pod);
  return due !== undefined && due <= nowMs;
}

/**
 * Returns whether a job is running according to the pod. `undefined`: the pod does not report it,
 * or not yet.
 */
export function isBusy({ busy, assumedBusyFrom }: PodSnapshot, nowMs: number): boolean | undefined {
  return (
    busy ??
    (assumedBusyFrom !== undefined && Date.parse(assumedBusyFrom) <= nowMs ? true : undefined)
  );
}

/**
 * Returns whether a problem that keeps a container from starting counts as a failure: at once for an
 * invalid image name, after a while for everything that may be transient.
 */
export function isPersistentProblem(
  problem: NonNullable<PodSnapshot['problem']>,
  nowMs: number,
): boolean {
  return problemDueAtMs(problem) <= nowMs;
}

function problemDueAtMs({ kind, since }: NonNullable<PodSnapshot['problem']>): number {
  return kind === 'invalid_image' ? 0 : Date.parse(since) + IMAGE_PROBLEM_GRACE_MS;
}

/** Maximum delay of a state notification by its rate limit (ms). */
const MAX_UNTOLD_MS = 60_000;

/**
 * Returns the time for which a pod has had the reported state (ms). It is limited, because anyone
 * who may send a signal can send any value.
 */
export function stateAgeMs(forMs: unknown): number {
  return typeof forMs === 'number' && forMs > 0 ? Math.min(forMs, MAX_UNTOLD_MS) : 0;
}

/**
 * Returns whether a single-use runner has run its job and exited by itself. After its workflow
 * knows that, no decision needs its pod or its log any more (docs/lifecycle.md, rule 2). A pod that
 * was stopped or is being deleted is left to its workflow.
 */
export function isCompletedEphemeral({
  exit,
  deleted,
  terminating,
  disruptionReason,
  reusable,
}: PodSnapshot): boolean {
  const { record } = exit ?? {};
  return (
    exit?.code === 0 &&
    record?.job === 'completed' &&
    record.reason === undefined &&
    reusable !== true &&
    !deleted &&
    !terminating &&
    disruptionReason === undefined
  );
}

/**
 * Returns the time at which the condition will hold if nothing changes (ms since the epoch, 0 if it
 * holds now). Returns `undefined` if only a change can make it true.
 */
export function conditionDueAtMs(condition: PodCondition, pod: PodSnapshot): number | undefined {
  if (pod.deleted) return 0;
  if (condition === 'deleted') return undefined;
  if (pod.ended) return 0;
  if (condition === 'ended' && pod.uploadingUntil !== undefined)
    return Math.min(Date.parse(pod.uploadingUntil), overdueAtMs(pod) ?? Number.POSITIVE_INFINITY);
  if (condition === 'online') {
    if (pod.online ?? pod.startedAt !== undefined) return 0;
    if (pod.problem !== undefined) return problemDueAtMs(pod.problem);
  }
  return overdueAtMs(pod);
}

function overdueAtMs({ terminationDeadline }: PodSnapshot): number | undefined {
  return terminationDeadline === undefined
    ? undefined
    : Date.parse(terminationDeadline) + TERMINATION_OVERDUE_MS;
}
