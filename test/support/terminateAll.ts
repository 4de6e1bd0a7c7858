import type { Client } from '@temporalio/client';

/** Ends what a test has left running on its task queue: nobody works on it any more, and who lists or asks all workflows would wait for it. */
export async function terminateAll(client: Client, taskQueue: string): Promise<void> {
  for await (const { workflowId } of client.workflow.list({
    query: `TaskQueue = '${taskQueue}' AND CloseTime IS NULL`,
  })) {
    // One that has ended since it was listed is what was wanted.
    await client.workflow
      .getHandle(workflowId)
      .terminate('the test is over')
      .catch(() => undefined);
  }
}
