/** A workflow of somebody who may write to the Temporal namespace, and passes by Holdfast's own: any activity, with an input of their own making. */
import { proxyActivities } from '@temporalio/workflow';

export interface StrangersCall {
  readonly taskQueue: string;
  readonly activity: string;
  readonly input: unknown;
}

export async function callActivity({
  taskQueue,
  activity,
  input,
}: StrangersCall): Promise<unknown> {
  const calls = proxyActivities<Record<string, (input: unknown) => Promise<unknown>>>({
    taskQueue,
    startToCloseTimeout: '30s',
    retry: { maximumAttempts: 1 },
  });
  return await calls[activity]?.(input);
}
