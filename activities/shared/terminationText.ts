/** Describes the identity that terminated a workflow, and the reason. */
import type { Client } from '@temporalio/client';

/**
 * Returns how a terminated run was terminated, such as `was terminated by ada@desk: no reason`.
 * @throws the error of the Temporal client if the history cannot be read
 */
export async function terminationText(
  client: Client,
  { workflowId, runId }: { readonly workflowId: string; readonly runId: string },
): Promise<string> {
  const { history } = await client.workflowService.getWorkflowExecutionHistoryReverse({
    namespace: client.options.namespace,
    execution: { workflowId, runId },
    maximumPageSize: 1,
  });
  const { reason, identity } =
    history?.events?.[0]?.workflowExecutionTerminatedEventAttributes ?? {};
  return `was terminated${identity ? ` by ${identity}` : ''}${reason ? `: ${reason}` : ''}`;
}
