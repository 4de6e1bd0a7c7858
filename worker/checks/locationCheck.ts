/** Checks whether the task queue already serves runners of another location. */
import { Client, type ConnectionLike } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import pRetry from 'p-retry';
import { historyEvents, type HistoryEvent } from '../../activities/shared/historyEvents.ts';
import { SEARCH_ATTRIBUTES } from '../../core/contract/index.ts';
import { formatServedLocation, type ServedLocation } from '../../core/domain/location.ts';
import { parseJson } from '../../core/domain/parseJson.ts';
import {
  quoteLiteral,
  runningRunnersQuery,
  runningRunnersInQuery,
} from '../../core/domain/visibility.ts';
import { dataConverterOf } from '../codec/dataConverter.ts';
import { oneLine, type HoldfastConfig } from '../settings/config.ts';
import type { Finding } from './finding.ts';

/** Maximum number of runners in other locations whose history is read. */
const MAX_CHECKED = 10;

/**
 * Retries of the query (ms). A server under load, or one whose search attributes are new, rejects
 * queries for some seconds.
 */
const RETRIES = { retries: 5, minTimeout: 300, maxTimeout: 4_000, maxRetryTime: 10_000 } as const;

/**
 * Checks that the runners of the task queue are in the worker's location. If some are, the queue
 * needs this worker. If all are elsewhere, this worker could not manage them, and its new runners
 * would be in another location than theirs: most likely a setting is wrong. A location that only a
 * client can have written is a warning. Otherwise one workflow could prevent every worker of the
 * queue from starting. Never throws.
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
    return await pRetry(async () => await evaluateQueue(client, taskQueue, place), RETRIES);
  } catch (error) {
    return {
      level: 'error',
      message: `failed to read how the task queue "${taskQueue}" is used: ${because(error)}`,
      fix: 'fix the cause in the message, then run "holdfast doctor"',
    };
  }
}

async function evaluateQueue(
  client: Client,
  taskQueue: string,
  served: ServedLocation,
): Promise<Finding> {
  if (await hasRunner(client, runningRunnersInQuery(taskQueue, served)))
    return evaluateLocation(taskQueue, served, undefined);
  return evaluateLocation(taskQueue, served, await runnerElsewhere(client, taskQueue));
}

/**
 * Returns a runner whose location is proven, if one of the first few has one, otherwise any runner.
 */
async function runnerElsewhere(
  client: Client,
  taskQueue: string,
): Promise<RunnerElsewhere | undefined> {
  const query = `${runningRunnersQuery(taskQueue)} AND ${SEARCH_ATTRIBUTES.place.name} IS NOT NULL`;
  let found: RunnerElsewhere | undefined;
  let checked = 0;
  for await (const { workflowId, runId, typedSearchAttributes } of client.workflow.list({
    query,
    pageSize: MAX_CHECKED,
  })) {
    const place = typedSearchAttributes.get(SEARCH_ATTRIBUTES.place) ?? '';
    for await (const event of historyEvents(client, { workflowId, runId }))
      if (isWrittenByWorker(event, place)) return { workflowId, place, proven: true };
    found ??= { workflowId, place, proven: false };
    if (++checked === MAX_CHECKED) break;
  }
  return found;
}

/**
 * Whether this event proves that a worker of the task queue wrote the location: the run's own
 * workflow did, or the run continues one. A client that starts a workflow can set any search
 * attribute, but can produce neither of these events.
 */
export function isWrittenByWorker(
  {
    workflowExecutionStartedEventAttributes: started,
    upsertWorkflowSearchAttributesEventAttributes: upserted,
  }: HistoryEvent,
  place: string,
): boolean {
  const isContinued = (started?.continuedExecutionRunId ?? '') !== '';
  const written = upserted ?? (isContinued ? started : undefined);
  const value = written?.searchAttributes?.indexedFields?.[SEARCH_ATTRIBUTES.place.name];
  return value !== undefined && value !== null && readKeyword(value) === place;
}

function readKeyword(payload: Payload): unknown {
  return parseJson(Buffer.from(payload.data ?? new Uint8Array()).toString('utf8'));
}

/**
 * Returns the causes of an error. The message of the client ("Failed to list workflows") does not
 * name them.
 */
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

/**
 * Runner of the task queue in another location.
 * @property proven - whether a worker wrote its location. If false, the client that started it may
 * have
 */
interface RunnerElsewhere {
  readonly workflowId: string;
  readonly place: string;
  readonly proven: boolean;
}

/**
 * Returns the finding for the runners of the task queue.
 * @param elsewhere - a runner of the queue, if none of them is in the worker's location
 */
export function evaluateLocation(
  taskQueue: string,
  served: ServedLocation,
  elsewhere: RunnerElsewhere | undefined,
): Finding {
  const here = formatServedLocation(served);
  if (elsewhere === undefined)
    return { level: 'ok', message: `task queue "${taskQueue}" for runners in ${here}` };
  return {
    level: elsewhere.proven ? 'error' : 'warning',
    message: `HOLDFAST_TASK_QUEUE: the task queue "${taskQueue}" is used for runners in ${elsewhere.place} (${elsewhere.workflowId}), and this worker's are in ${here} (compute/cluster/installation/namespace)`,
    fix: `set HOLDFAST_TASK_QUEUE to a separate queue, or the settings that differ to those of the queue's other workers; to move the queue, let its runners end first: holdfast runner drain --query "RunnerLocation = ${quoteLiteral(elsewhere.place)}" --yes --wait`,
  };
}

async function hasRunner(client: Client, query: string): Promise<boolean> {
  for await (const _runner of client.workflow.list({ query, pageSize: 1 })) return true;
  return false;
}
