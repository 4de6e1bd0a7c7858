/**
 * Conditions of a pod that a runner workflow waits for. All are one-shot and monotonic, so a late
 * completion is never wrong. Pure.
 */
import type { PodSnapshot } from './pod.ts';

/** Conditions of a pod that a workflow can wait for; see {@link conditionMet}. */
export const POD_CONDITIONS = ['online', 'ended', 'deleted'] as const;
/** Condition of a pod that a workflow can wait for. */
export type PodCondition = (typeof POD_CONDITIONS)[number];

/** Image problems are given this long to heal (a registry's hiccup), counted from first seen; a wrong name is not. */
export const IMAGE_PROBLEM_GRACE_MS = 30_000;
/** A terminating pod that is still there this long after its grace has lost its kubelet. */
export const TERMINATION_OVERDUE_MS = 60_000;

/** Activity id of a wait: the pod's name is unique per attempt, so a late completion can never answer another wait. */
export function waitActivityId(condition: PodCondition, podName: string): string {
  return `${condition}/${podName}`;
}

/** The reverse of {@link waitActivityId}; `undefined` for the id of another activity. */
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
 * CI server must be asked; also if it will never be online. `ended`: see {@link PodSnapshot.ended};
 * also if the node does not respond anymore.
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

/** Its announcements come no later, by their pace. */
const MAX_UNTOLD_MS = 60_000;

/** For how long a pod has been what it says it is, in ms. Whoever may send a signal can say anything. */
export function stateAgeMs(forMs: unknown): number {
  return typeof forMs === 'number' && forMs > 0 ? Math.min(forMs, MAX_UNTOLD_MS) : 0;
}

/**
 * A runner for one job that did it, and ended by itself: once its end is known to its workflow, no decision needs its pod any more, nor its
 * log (docs/lifecycle.md, rule 2). What was told to go, or is being taken away, is for its workflow to judge.
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

/** When the condition will hold if nothing changes (ms since the epoch; 0: it holds), or `undefined` when only a change can bring it. */
export function conditionDueAtMs(condition: PodCondition, pod: PodSnapshot): number | undefined {
  if (pod.deleted) return 0;
  if (condition === 'deleted') return undefined;
  if (pod.ended) return 0;
  if (condition === 'ended' && pod.uploadingUntil !== undefined)
    return Math.min(Date.parse(pod.uploadingUntil), overdueAtMs(pod) ?? Number.POSITIVE_INFINITY);
  if (condition === 'online') {
    if (pod.online ?? pod.startedAt !== undefined) return 0;
    if (pod.problem !== undefined)
      return pod.problem.kind === 'invalid_image'
        ? 0
        : Date.parse(pod.problem.since) + IMAGE_PROBLEM_GRACE_MS;
  }
  return overdueAtMs(pod);
}

function overdueAtMs({ terminationDeadline }: PodSnapshot): number | undefined {
  return terminationDeadline === undefined
    ? undefined
    : Date.parse(terminationDeadline) + TERMINATION_OVERDUE_MS;
}
