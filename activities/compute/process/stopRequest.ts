import { omitUndefined } from '../../../core/domain/omitUndefined.ts';

/** stop.json: a deletion that was requested. It is durable: the wrapper keeps the grace although the worker may have died. */
export interface StopRequest {
  /** When the first deletion was requested (ISO 8601). */
  readonly at: string;
  /** SIGTERM at once, SIGKILL at this time (ISO 8601). */
  readonly deadline: string;
  readonly reason?: string;
}

/**
 * What a deletion makes of one that was requested before: a repeated deletion can shorten the grace, never extend it (the
 * rule of Kubernetes, https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination).
 *
 * @returns the request to write, or `undefined` when the present one stands as it is
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

/** How long after `nowMs` the SIGKILL is due, in ms; 0 when it is due now. */
export function remainingGraceMs(stop: StopRequest, nowMs: number): number {
  return Math.max(0, Date.parse(stop.deadline) - nowMs);
}
