/**
 * Decision about a starting pod: it is online, it runs but is not known at the CI server, it
 * failed, or it needs more time. Pure.
 */
import type { RunnerCause } from '../../core/contract/index.ts';
import { formatDuration } from '../../core/domain/duration.ts';
import type { PodSnapshot } from '../../core/domain/pod.ts';

/**
 * Deadlines of a starting runner (ms). Registration counts from the container's start, the others
 * from the pod's creation.
 */
export interface StartupDeadlines {
  readonly podUnscheduledMs: number;
  readonly podPendingMs: number;
  readonly registrationMs: number;
}

/** Decision about a starting pod. */
export type StartupDecision =
  | { readonly kind: 'ended' }
  | { readonly kind: 'online' }
  /** The container is running and the pod does not report its state: check the CI server. */
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly cause: RunnerCause; readonly message: string }
  | { readonly kind: 'wait'; readonly forMs: number; readonly why: string };

/**
 * Decides what to do about a starting pod.
 *
 * @param sinceCreatedMs - age of the pod by the workflow's clock (ms); the deadlines for scheduling
 * and starting count from its creation
 * @param sinceStartedMs - minimum age of its container by the workflow's clock (ms); the deadline
 * for registration counts from the container's start
 */
export function decideStartup(
  pod: PodSnapshot,
  sinceCreatedMs: number,
  sinceStartedMs: number,
  t: StartupDeadlines,
): StartupDecision {
  if (pod.ended) return { kind: 'ended' };
  if (pod.online === true) return { kind: 'online' };
  if (pod.startedAt !== undefined) {
    if (pod.online === undefined) return { kind: 'running' };
    const remaining = t.registrationMs - sinceStartedMs;
    if (remaining <= 0)
      return failed(
        'never_registered',
        `the runner did not come online within ${formatDuration(t.registrationMs)} of its start`,
      );
    return { kind: 'wait', forMs: remaining, why: 'runner to come online' };
  }
  const { problem } = pod;
  if (problem?.persistent === true) {
    return failed('image_pull', `the container cannot start: ${problem.message}`);
  }
  if (!pod.scheduled && sinceCreatedMs >= t.podUnscheduledMs) {
    return failed(
      'unschedulable',
      `no node was found for the pod within ${formatDuration(t.podUnscheduledMs)}: ${pod.unschedulable ?? 'the scheduler gave no reason'}`,
    );
  }
  if (sinceCreatedMs >= t.podPendingMs) {
    if (problem !== undefined)
      return failed('image_pull', `the container cannot start: ${problem.message}`);
    return failed(
      'pending_timeout',
      `the runner's container did not start within ${formatDuration(t.podPendingMs)}`,
    );
  }
  const deadline = pod.scheduled ? t.podPendingMs : Math.min(t.podUnscheduledMs, t.podPendingMs);
  // If the pod reports when it is online, nothing reports the start of its container. Registration
  // is overdue this long after the pod's creation at the earliest.
  const lookAgainMs = pod.online === undefined ? Number.POSITIVE_INFINITY : t.registrationMs;
  return {
    kind: 'wait',
    forMs: Math.min(deadline - sinceCreatedMs, lookAgainMs),
    why: pod.scheduled ? 'container to start' : 'pod to be scheduled',
  };
}

/**
 * Returns the time to wait before the next check of a runner that may be about to register (ms).
 * The interval grows, so that a deadline of days needs as few checks as one of minutes. The last
 * check is at the deadline.
 *
 * @param sinceStartMs - age of the container (ms)
 * @param registrationMs - deadline of the registration after the container's start (ms)
 * @param everyMs - initial interval (ms)
 */
export function nextCheckMs(sinceStartMs: number, registrationMs: number, everyMs: number): number {
  return Math.min(Math.max(everyMs, sinceStartMs / 10), Math.max(1, registrationMs - sinceStartMs));
}

function failed(cause: RunnerCause, message: string): StartupDecision {
  return { kind: 'failed', cause, message };
}
