import type { Client } from '@temporalio/client';

/**
 * Terminates the workflows that a test has left on its task queue. They have no worker, and queries
 * to all workflows would wait for them.
 */
export async function terminateAll(client: Client, taskQueue: string): Promise<void> {
  for await (const { workflowId } of client.workflow.list({
    query: `TaskQueue = '${taskQueue}' AND CloseTime IS NULL`,
  })) {
    // A workflow that has ended since it was listed needs no termination.
    await client.workflow
      .getHandle(workflowId)
      .terminate('the test is over')
      .catch(() => undefined);
  }
}
