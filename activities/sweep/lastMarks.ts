import type { Client } from '@temporalio/client';
import type { SweepMark, SweepReport } from '../../core/contract/index.ts';
import { isObject } from '../../core/domain/isObject.ts';
import { completedSweepsQuery } from '../../core/domain/visibility.ts';

/**
 * Returns the marks of the last sweep of the task queue. They are read from the result of that
 * sweep, which only a worker of this queue can write. Marks from an input could be forged to repair
 * at the first sighting, where two are required.
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
