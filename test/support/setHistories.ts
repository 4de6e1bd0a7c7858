import type { Client } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { historyEvents, type HistoryEvent } from '../../activities/shared/historyEvents.ts';

/** Sizes of the histories of a workflow's runs. */
export interface HistorySizes {
  readonly runs: number;
  readonly events: number;
  /** The largest event of each type, in bytes. */
  readonly largest: Readonly<Record<string, number>>;
  /** Bytes of all events of each type. */
  readonly total: Readonly<Record<string, number>>;
  /** Workflow tasks and activities that failed or timed out, except those that the server reset. */
  readonly failures: readonly string[];
}

/** Reads the histories from the first run to the current one. */
export async function historySizes(client: Client, workflowId: string): Promise<HistorySizes> {
  const { raw } = await client.workflow.getHandle(workflowId).describe();
  const largest: Record<string, number> = {};
  const total: Record<string, number> = {};
  const failures: string[] = [];
  let [runs, events] = [0, 0];
  for (let runId = raw.workflowExecutionInfo?.firstRunId ?? undefined; runId;) {
    runs++;
    let next: string | undefined;
    for await (const event of historyEvents(client, { workflowId, runId })) {
      events++;
      const type = kindOf(event);
      const bytes = temporal.api.history.v1.HistoryEvent.encode(event).finish().length;
      largest[type] = Math.max(largest[type] ?? 0, bytes);
      total[type] = (total[type] ?? 0) + bytes;
      if (isFailure(event)) failures.push(JSON.stringify(event));
      next = event.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? undefined;
    }
    runId = next;
  }
  return { runs, events, largest, total, failures };
}

const kindOf = (event: HistoryEvent): string =>
  Object.keys(event).find((key) => key.endsWith('EventAttributes')) ?? '';

const { WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND: UNHANDLED_COMMAND } =
  temporal.api.enums.v1.WorkflowTaskFailedCause;

/** Temporal repeats a task that ends the run while a signal arrives, so that no signal is lost. */
function isFailure(event: HistoryEvent): boolean {
  const { workflowTaskFailedEventAttributes: failed } = event;
  return Boolean(
    (failed && failed.identity !== 'history-service' && failed.cause !== UNHANDLED_COMMAND) ||
    event.workflowTaskTimedOutEventAttributes ||
    event.activityTaskFailedEventAttributes ||
    event.activityTaskTimedOutEventAttributes,
  );
}
