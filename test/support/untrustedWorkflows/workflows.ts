/**
 * A workflow of a user with write access to the Temporal namespace. It calls any activity with any
 * input.
 */
import { proxyActivities } from '@temporalio/workflow';

export interface ForeignCall {
  readonly taskQueue: string;
  readonly activity: string;
  readonly input: unknown;
}

export async function callActivity({ taskQueue, activity, input }: ForeignCall): Promise<unknown> {
  const calls = proxyActivities<Record<string, (input: unknown) => Promise<unknown>>>({
    taskQueue,
    startToCloseTimeout: '30s',
    retry: { maximumAttempts: 1 },
  });
  return await calls[activity]?.(input);
}
