/** Decides which payloads a worker accepts if it requires encryption. Pure. */
import type { SerializationContext } from '@temporalio/common';
import { matchesAny } from '../../activities/compute/kubernetes/podPolicy/patterns.ts';

/** Workflow that a payload was encrypted for, according to its authenticated metadata. */
export interface PayloadBinding {
  /** Temporal namespace. */
  readonly namespace?: string;
  /** Workflow ID of a Schedule's action, to which Temporal appends the time of each start. */
  readonly workflowId?: string;
}

/** Facts about a payload for {@link payloadRejection}. */
export interface PayloadFacts {
  readonly encrypted: boolean;
  readonly bound: PayloadBinding;
  /**
   * Field in which the payload was found. `undefined` if the SDK does not provide it (before 1.24).
   */
  readonly context: SerializationContext | undefined;
  /**
   * Patterns (`*`) of workflow ids that may receive payloads without a workflow id, which the
   * codec server encrypts.
   */
  readonly unboundWorkflowIds: readonly string[];
}

/** Time that Temporal appends to the workflow id of a Schedule's action. */
const SCHEDULED = /^-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** Returns why a worker rejects a payload, or `undefined` if it accepts it. */
export function payloadRejection({
  encrypted,
  bound,
  context,
  unboundWorkflowIds,
}: PayloadFacts): string | undefined {
  if (!encrypted) return 'it is not encrypted';
  if (context === undefined) return undefined;
  if (bound.namespace !== undefined && bound.namespace !== context.namespace)
    return 'it was encrypted for another Temporal namespace';
  const { workflowId = '' } = context;
  if (bound.workflowId === undefined)
    return matchesAny(unboundWorkflowIds, workflowId)
      ? undefined
      : 'it was encrypted without a workflow id';
  return bound.workflowId === workflowId || isScheduledRun(bound.workflowId, workflowId)
    ? undefined
    : 'it was encrypted for another workflow';
}

function isScheduledRun(scheduleWorkflowId: string, workflowId: string): boolean {
  return (
    workflowId.startsWith(scheduleWorkflowId) &&
    SCHEDULED.test(workflowId.slice(scheduleWorkflowId.length))
  );
}
