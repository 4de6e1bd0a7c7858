import type { Client } from '@temporalio/client';
import type { SweepMark, SweepReport } from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { completedSweepsQuery } from '../../core/domain/visibility.ts';

/**
 * Returns what the last sweep of the task queue has marked. It is read from that sweep's own result, which only a worker of this queue can have
 * written: with marks that anybody may hand in, the first look at something would do where two are asked for.
 */
export async function lastMarks(client: Client, taskQueue: string): Promise<SweepMark[]> {
  for await (const { workflowId, runId } of client.workflow.list({
    query: completedSweepsQuery(taskQueue),
    pageSize: 1,
  })) {
    const { marks } = await client.workflow
      .getHandle<() => Promise<Partial<SweepReport>>>(workflowId, runId)
      .result();
    return (marks ?? []).filter(isObject);
  }
  return [];
}
