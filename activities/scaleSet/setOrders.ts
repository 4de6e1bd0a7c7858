import type { Client } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/client';
import { isOpen } from '../../core/domain/workflowStatus.ts';
import {
  SET_CAPACITY_MEMO,
  SET_DELETION_MEMO,
  SET_ROUTING_MEMO,
  setWorkflowId,
} from '../../core/contract/index.ts';

/** Whether a runner set needs its scale set, and the number of jobs that it can run. */
export type SetOrders =
  | { readonly kind: 'listen'; readonly capacity: number }
  /** `remove`: the set was deleted, or takes its demand from elsewhere now. */
  | { readonly kind: 'end'; readonly remove: boolean };

/**
 * Reads the orders of a set from its workflow. A set that was terminated did not end on purpose, so
 * its scale set stays for the set that is started next.
 */
export async function readOrders(client: Client, set: string): Promise<SetOrders> {
  try {
    const { status, memo = {} } = await client.workflow.getHandle(setWorkflowId(set)).describe();
    const capacity: unknown = memo[SET_CAPACITY_MEMO];
    if (!isOpen(status))
      return {
        kind: 'end',
        remove:
          status.name === 'COMPLETED' ||
          status.name === 'CANCELLED' ||
          memo[SET_DELETION_MEMO] !== undefined,
      };
    if (typeof capacity === 'number' && Number.isSafeInteger(capacity) && capacity >= 0)
      return { kind: 'listen', capacity };
    // A set that has just started publishes both at the same time.
    return memo[SET_ROUTING_MEMO] === undefined
      ? { kind: 'listen', capacity: 0 }
      : { kind: 'end', remove: true };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'end', remove: false };
    throw error;
  }
}
