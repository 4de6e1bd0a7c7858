/** Causes for which any workflow does not proceed. Pure. */
import type { WaitCause, WaitReason } from '../contract/index.ts';
import { FAILURE_TYPES } from '../activities/failureTypes.ts';
import { omitUndefined } from '../domain/omitUndefined.ts';
import type { PendingFact, WorkflowFacts } from './facts.ts';

/** Causes by the type of an activity's failure. */
const FAILURE_CAUSES: Readonly<Record<string, WaitCause>> = {
  [FAILURE_TYPES.rate_limited]: 'rate_limit',
  [FAILURE_TYPES.credentials]: 'credential_rejected',
  [FAILURE_TYPES.unknownCredential]: 'credential_rejected',
  [FAILURE_TYPES.unavailable]: 'ci_server_unreachable',
  [FAILURE_TYPES.conflict]: 'session_held',
  [FAILURE_TYPES.quota_exceeded]: 'quota',
  [FAILURE_TYPES.podInvalid]: 'pod_rejected',
  [FAILURE_TYPES.computeRejected]: 'pod_rejected',
  [FAILURE_TYPES.computeForbidden]: 'cluster_forbidden',
  [FAILURE_TYPES.computeUnavailable]: 'cluster_unreachable',
  [FAILURE_TYPES.wrongLocation]: 'wrong_location',
  [FAILURE_TYPES.volumeClaimFenced]: 'volume_claim',
  [FAILURE_TYPES.busy]: 'job_running',
  [FAILURE_TYPES.notOnline]: 'coming_online',
};

/** Failures that are part of a wait: the activity reads again what it waits for. */
const EXPECTED: ReadonlySet<string> = new Set([FAILURE_TYPES.notVisible]);

/**
 * Activities whose attempts wait for a long time. Temporal keeps the last failure while the next
 * attempt runs, so the failure applies only between attempts.
 */
const LONG_WAITS: ReadonlySet<string> = new Set(['awaitPod', 'listen']);

/**
 * Returns why the workflow does not proceed, whatever it does.
 * @param hasAnswered - whether it answered a query, or cannot
 */
export function workflowCauses(facts: WorkflowFacts, hasAnswered: boolean): WaitReason[] {
  const { id, paused, unpolled } = facts;
  if (paused !== undefined)
    return [
      {
        cause: 'workflow_paused',
        text: `workflow ${id} is paused ${paused.text}`,
        fix: `temporal workflow unpause --workflow-id ${id}`,
        ...omitUndefined({ since: paused.since }),
      },
    ];
  const queues = unpolled.map(({ taskQueue, fix }) => ({
    cause: 'no_worker' as const,
    text: `no worker polls task queue ${taskQueue}`,
    fix,
  }));
  if (queues.length > 0 || hasAnswered) return queues;
  return [
    {
      cause: 'no_answer',
      text: `no worker answered a query of ${id} in time, and one has polled its task queue recently`,
      fix: "check that the worker still runs, its log, and the workflow's failed tasks in Temporal's UI",
    },
  ];
}

/** Returns the causes for which activities are retried. */
export function failureCauses(pending: readonly PendingFact[]): WaitReason[] {
  return pending.flatMap(({ type, scheduled, failureType, lastFailure, nextRetryAt }) => {
    if (failureType === undefined || EXPECTED.has(failureType)) return [];
    if (LONG_WAITS.has(type) && !scheduled) return [];
    const cause = FAILURE_CAUSES[failureType] ?? 'activity_failing';
    const message = lastFailure ?? failureType;
    return [
      {
        cause,
        text: cause === 'activity_failing' ? `${type} fails: ${message}` : message,
        ...omitUndefined({ until: nextRetryAt }),
      },
    ];
  });
}
