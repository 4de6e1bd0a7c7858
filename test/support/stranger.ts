import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { WorkflowFailedError, type Client } from '@temporalio/client';
import { rootCause } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { ForeignCall } from './strangerWorker/workflows.ts';

/** A user with write access to the Temporal namespace, and a worker of their own. */
export interface Stranger {
  /**
   * Calls an activity of Holdfast from a workflow of their own. A function as input gets the
   * workflow's ID.
   * @returns the reason of the rejection
   */
  call(activity: string, taskQueue: string, input: object): Promise<string>;
  close(): Promise<void>;
}

export async function startStranger(address: string, client: Client): Promise<Stranger> {
  const queue = `stranger-${randomUUID().slice(0, 8)}`;
  const connection = await NativeConnection.connect({ address });
  const worker = await Worker.create({
    connection,
    taskQueue: queue,
    workflowsPath: fileURLToPath(new URL('strangerWorker/workflows.ts', import.meta.url)),
  });
  const done = worker.run();
  return {
    async call(activity, taskQueue, input) {
      const workflowId = `stranger-${randomUUID()}`;
      const said: unknown =
        typeof input === 'function' ? (input as (id: string) => unknown)(workflowId) : input;
      const args: [ForeignCall] = [{ taskQueue, activity, input: said }];
      return await refusal(
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

/** @returns the reason of the rejection */
export async function refusal(result: Promise<unknown>): Promise<string> {
  const error: unknown = await result.then(
    (value) => Promise.reject(new Error(`not refused: ${JSON.stringify(value)}`)),
    (reason: unknown) => reason,
  );
  return rootCause(error instanceof WorkflowFailedError ? error.cause : error) ?? '';
}
