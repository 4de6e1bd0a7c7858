import type { Client } from '@temporalio/client';

/** From temporal.api.enums.v1.EventType. */
const EVENT = { workflowTaskCompleted: 7, searchAttributes: 40 } as const;

/** What Temporal stores for one run of a workflow. */
export interface HistoryCost {
  readonly events: number;
  /** Size of the history. */
  readonly bytes: number;
  readonly workflowTasks: number;
  /**
   * Writes of its record in lists: start, changed search attributes, end. The changes of the last
   * workflow task are written with the end: Temporal skips upserts of a closed workflow
   * (service/history/visibility_queue_task_executor.go of its server).
   */
  readonly visibilityWrites: number;
}

/**
 * Returns the cost of one run of a workflow.
 * @param runId - default: the latest run
 */
export async function historyCost(
  client: Client,
  workflowId: string,
  runId?: string,
): Promise<HistoryCost> {
  const handle = client.workflow.getHandle(workflowId, runId);
  const { historyLength, historySize } = await handle.describe();
  const kinds = (await handle.fetchHistory()).events?.map(({ eventType }) => eventType) ?? [];
  const beforeLastTask = kinds.slice(0, kinds.lastIndexOf(EVENT.workflowTaskCompleted));
  return {
    events: historyLength,
    bytes: historySize ?? Number.NaN,
    workflowTasks: kinds.filter((kind) => kind === EVENT.workflowTaskCompleted).length,
    visibilityWrites: 2 + beforeLastTask.filter((kind) => kind === EVENT.searchAttributes).length,
  };
}
