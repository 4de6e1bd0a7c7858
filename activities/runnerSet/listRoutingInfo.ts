/** Which jobs sets are for, as their memos say: known also while no worker answers. */
import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { SET_ROUTING_MEMO, type SetRoutingInfo } from '../../core/contract/index.ts';
import { CI_SERVER_KINDS } from '../../core/domain/ciServerKind.ts';
import { runningSetsQuery } from '../../core/domain/visibility.ts';

const coverMemo = z.object({
  ciServer: z.enum(CI_SERVER_KINDS).exactOptional(),
  labels: z.array(z.string()),
  scope: z.string(),
  scopeKind: z.enum(['organization', 'repository', 'enterprise']),
  group: z.union([z.object({ id: z.string() }), z.object({ name: z.string() })]).exactOptional(),
  groupJobs: z.literal(true).exactOptional(),
  atCapacity: z.literal(true).exactOptional(),
  draining: z.literal(true).exactOptional(),
});

/** Sets that one request lists. */
export const PAGE = 1_000;

/** @returns `undefined` when the memo of a set's workflow does not say what it covers */
export function parseRoutingMemo(
  memo: Record<string, unknown> | undefined,
): SetRoutingInfo | undefined {
  return coverMemo.safeParse(memo?.[SET_ROUTING_MEMO]).data;
}

/**
 * The running sets of a task queue, by workflow id; `undefined`: the memo does not say what it covers.
 * @param max - more are not looked at. @default all
 */
export async function listRoutingInfo(
  { workflow }: Client,
  taskQueue: string,
  max = Infinity,
): Promise<Map<string, SetRoutingInfo | undefined>> {
  const covers = new Map<string, SetRoutingInfo | undefined>();
  for await (const { workflowId, memo } of workflow.list({
    query: runningSetsQuery(taskQueue),
    pageSize: PAGE,
  })) {
    covers.set(workflowId, parseRoutingMemo(memo));
    if (covers.size === max) break;
  }
  return covers;
}
