import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { WorkflowFailedError, type Client } from '@temporalio/client';
import { rootCause } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { ForeignCall } from './untrustedWorkflows/workflows.ts';

/** Worker of an untrusted user who has write access to the Temporal namespace. */
export interface UntrustedWorker {
  /**
   * Calls an activity of Holdfast from a workflow of the user. A function as input is called with
   * the ID of that workflow.
   * @returns the reason of the rejection
   */
  call(activity: string, taskQueue: string, input: object): Promise<string>;
  close(): Promise<void>;
}

/** Starts a worker of an untrusted user. */
export async function startUntrustedWorker(
  address: string,
  client: Client,
): Promise<UntrustedWorker> {
  const queue = `untrusted-${randomUUID().slice(0, 8)}`;
  const connection = await NativeConnection.connect({ address });
  const worker = await Worker.create({
    connection,
    taskQueue: queue,
    workflowsPath: fileURLToPath(new URL('untrustedWorkflows/workflows.ts', import.meta.url)),
  });
  const done = worker.run();
  return {
    async call(activity, taskQueue, input) {
      const workflowId = `untrusted-${randomUUID()}`;
      const body: unknown =
        typeof input === 'function' ? (input as (id: string) => unknown)(workflowId) : input;
      const args: [ForeignCall] = [{ taskQueue, activity, input: body }];
      return await rejectionReason(
        client.workflow.execute('callActivity', {
          taskQueue: queue,
          workflowId,
          args,
        }),
      );
    },
    async close() {
      worker.shutdown();
      await done;
      await connection.close();
    },
  };
}

/**
 * Returns the reason of a rejection.
 * @throws Error if the call was not rejected
 */
export async function rejectionReason(result: Promise<unknown>): Promise<string> {
  const error: unknown = await result.then(
    (value) => Promise.reject(new Error(`not rejected: ${JSON.stringify(value)}`)),
    (reason: unknown) => reason,
  );
  return rootCause(error instanceof WorkflowFailedError ? error.cause : error) ?? '';
}
