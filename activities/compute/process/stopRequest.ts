import { omitUndefined } from '../../../core/domain/omitUndefined.ts';

/**
 * Content of stop.json: a requested deletion. It is durable, so that the wrapper observes the grace
 * period even if the worker has died.
 */
export interface StopRequest {
  /** Time of the first request (ISO 8601). */
  readonly at: string;
  /** Time of the SIGKILL (ISO 8601). SIGTERM is sent immediately. */
  readonly deadline: string;
  readonly reason?: string;
}

/**
 * Merges a deletion into an earlier one. A repeated deletion can shorten the grace period but never
 * extend it, as in Kubernetes
 * (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination).
 * @returns the request to write, or `undefined` if the present one remains unchanged
 */
export function mergeStopRequest(
  present: StopRequest | undefined,
  gracePeriodSeconds: number,
  reason: string | undefined,
  nowMs: number,
): StopRequest | undefined {
  const deadline = new Date(nowMs + gracePeriodSeconds * 1000).toISOString();
  if (present === undefined)
    return omitUndefined({ at: new Date(nowMs).toISOString(), deadline, reason });
  return deadline < present.deadline ? { ...present, deadline } : undefined;
}

/** Returns the time from `nowMs` until the SIGKILL (ms), 0 if it is due. */
export function remainingGraceMs(stop: StopRequest, nowMs: number): number {
  return Math.max(0, Date.parse(stop.deadline) - nowMs);
}
