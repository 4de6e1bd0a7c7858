/** Reads which jobs sets serve, from the memos of their workflows. This needs no running worker. */
import type { Client } from '@temporalio/client';
import { z } from 'zod';
import { SET_ROUTING_MEMO, type SetRoutingInfo } from '../../core/contract/index.ts';
import { CI_SERVER_KINDS } from '../../core/domain/ciServerKind.ts';
import { runningSetsQuery } from '../../core/domain/visibility.ts';

const routingMemo = z.object({
  ciServer: z.enum(CI_SERVER_KINDS).exactOptional(),
  labels: z.array(z.string()),
  scope: z.string(),
  scopeKind: z.enum(['organization', 'repository', 'enterprise']),
  group: z.union([z.object({ id: z.string() }), z.object({ name: z.string() })]).exactOptional(),
  groupJobs: z.literal(true).exactOptional(),
  atCapacity: z.literal(true).exactOptional(),
  draining: z.literal(true).exactOptional(),
});

/** Sets per list request. */
export const PAGE = 1_000;

/**
 * Returns which jobs a set serves.
 * @returns `undefined` if the memo of its workflow does not contain it
 */
export function parseRoutingMemo(
  memo: Record<string, unknown> | undefined,
): SetRoutingInfo | undefined {
  return routingMemo.safeParse(memo?.[SET_ROUTING_MEMO]).data;
}

/**
 * Returns the running sets of a task queue by workflow ID. The value is `undefined` if the memo
 * does not contain which jobs the set serves.
 * @param max - maximum number of sets. @default unlimited
 */
export async function listRoutingInfo(
  { workflow }: Client,
  taskQueue: string,
  max = Infinity,
): Promise<Map<string, SetRoutingInfo | undefined>> {
  const sets = new Map<string, SetRoutingInfo | undefined>();
  for await (const { workflowId, memo } of workflow.list({
    query: runningSetsQuery(taskQueue),
    pageSize: PAGE,
  })) {
    sets.set(workflowId, parseRoutingMemo(memo));
    if (sets.size === max) break;
  }
  return sets;
}
