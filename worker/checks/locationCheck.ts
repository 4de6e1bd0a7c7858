/** Is the task queue used for runners in this worker's place? */
import { Client, type ConnectionLike } from '@temporalio/client';
import pRetry from 'p-retry';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { formatLocation, type ServedLocation } from '../../core/domain/location.ts';
import {
  quoteLiteral,
  runningRunnersQuery,
  runningRunnersInQuery,
} from '../../core/domain/visibility.ts';
import { dataConverterOf } from '../codec/dataConverter.ts';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/** A server under load, or one whose search attributes have just been made, refuses a query for some seconds. */
const PATIENCE = { retries: 5, minTimeout: 300, maxTimeout: 4_000, maxRetryTime: 10_000 } as const;

/**
 * A queue is used for the places of the lives that run on it. Where none of them is this worker's, it could do nothing for those lives, and new
 * ones would be lived in two places: most likely a setting is another than its author thinks. Where some are, they need it. Never throws.
 */
export async function checkLocation(
  {
    taskQueue,
    temporal,
    codecKeyFile,
  }: Pick<HoldfastConfig, 'taskQueue' | 'temporal' | 'codecKeyFile'>,
  connection: ConnectionLike,
  served: () => Promise<ServedLocation>,
): Promise<Finding> {
  try {
    const place = await served();
    const client = new Client({
      connection,
      namespace: temporal.namespace,
      dataConverter: dataConverterOf(codecKeyFile),
    });
    return await pRetry(async () => await evaluateQueue(client, taskQueue, place), PATIENCE);
  } catch (error) {
    return {
      level: 'error',
      message: `what the task queue "${taskQueue}" is used for cannot be found out: ${because(error)}`,
      fix: 'look at the message',
    };
  }
}

async function evaluateQueue(
  client: Client,
  taskQueue: string,
  served: ServedLocation,
): Promise<Finding> {
  if ((await anyRunner(client, runningRunnersInQuery(taskQueue, served))) !== undefined)
    return evaluateLocation(taskQueue, served, undefined);
  return evaluateLocation(
    taskQueue,
    served,
    await anyRunner(
      client,
      `${runningRunnersQuery(taskQueue)} AND ${SEARCH_ATTRIBUTES.place.name} IS NOT NULL`,
    ),
  );
}

/** The client's own words ("Failed to list workflows") say nothing: their causes do. */
function because(error: unknown): string {
  const words: string[] = [];
  for (
    let each: unknown = error;
    each !== undefined && words.length < 3;
    each = each instanceof Error ? each.cause : undefined
  )
    words.push(oneLine(each));
  return words.join(': ');
}

/** @param elsewhere - a life of the queue, if none of them is in this place */
export function evaluateLocation(
  taskQueue: string,
  served: ServedLocation,
  elsewhere: { readonly workflowId: string; readonly place: string } | undefined,
): Finding {
  const here = formatLocation(served);
  if (elsewhere === undefined)
    return { level: 'ok', message: `task queue "${taskQueue}" for runners in ${here}` };
  return {
    level: 'error',
    message: `HOLDFAST_TASK_QUEUE: the task queue "${taskQueue}" is used for runners in ${elsewhere.place} (${elsewhere.workflowId}), and this worker's are in ${here} (compute/cluster/installation/namespace)`,
    fix: `set HOLDFAST_TASK_QUEUE to a queue of this worker's own, or the settings that differ to those of the queue's other workers; to move the queue, let its runners end first: holdfast runner drain --query "RunnerLocation = ${quoteLiteral(elsewhere.place)}" --yes --wait`,
  };
}

async function anyRunner(
  client: Client,
  query: string,
): Promise<{ workflowId: string; place: string } | undefined> {
  for await (const { workflowId, typedSearchAttributes } of client.workflow.list({
    query,
    pageSize: 1,
  })) {
    return { workflowId, place: typedSearchAttributes.get(SEARCH_ATTRIBUTES.place) ?? '' };
  }
  return undefined;
}
