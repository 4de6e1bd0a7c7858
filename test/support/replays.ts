import type { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { workflowSourceOptions } from '../../worker/plugin/workflowBundle.ts';
import type { RecordedEvent } from '../replay/histories.ts';
import { historyFromJson, historyToJson, type History } from '../replay/historyJson.ts';

/**
 * Returns the histories of a workflow's runs, from the first to the current one. Each names the
 * next, because visibility may be late.
 */
export async function chainOf({ workflow }: Client, workflowId: string): Promise<History[]> {
  const { raw } = await workflow.getHandle(workflowId).describe();
  const chain: History[] = [];
  for (let runId = raw.workflowExecutionInfo?.firstRunId ?? undefined; runId;) {
    const history = await workflow.getHandle(workflowId, runId).fetchHistory();
    chain.push(history);
    const { workflowExecutionContinuedAsNewEventAttributes: next } = history.events?.at(-1) ?? {};
    runId = next?.newExecutionRunId ?? undefined;
  }
  return chain;
}

/** Returns the replay errors of these workflows' runs. Empty if the code is deterministic. */
export async function unreplayable(
  client: Client,
  workflowIds: readonly string[],
): Promise<string[]> {
  const histories: { workflowId: string; history: History }[] = [];
  for (const workflowId of workflowIds) {
    // A run that has just started has no workflow task to replay, and the replayer would wait for
    // it forever.
    const runs = (await chainOf(client, workflowId)).filter(
      ({ events }) =>
        events?.some(
          ({ workflowTaskCompletedEventAttributes: done }) => done !== null && done !== undefined,
        ) === true,
    );
    histories.push(...runs.map((history) => ({ workflowId, history })));
  }
  return await faultsOf(histories);
}

/** Returns the replay errors of these histories. */
export async function faultsOf(
  histories: readonly { workflowId: string; history: History }[],
): Promise<string[]> {
  const faults: string[] = [];
  for await (const { workflowId, error } of Worker.runReplayHistories(
    await workflowSourceOptions({}),
    histories,
  ))
    if (error) faults.push(`${workflowId}: ${String(error)}`);
  return faults;
}

/**
 * Returns the history as with a slow worker after the run's first local activity: its result is in
 * the workflow task that scheduled it, and the following commands are in the next one.
 */
export function withTaskAfterLocalActivity(history: History): History {
  const { events } = historyToJson(history) as { events: RecordedEvent[] };
  const marker = events.findIndex(
    ({ markerRecordedEventAttributes: attributes }) =>
      attributes?.markerName === 'core_local_activity',
  );
  const task = events.findLastIndex(
    ({ eventType }, index) => index < marker && eventType === 'EVENT_TYPE_WORKFLOW_TASK_COMPLETED',
  );
  if (task < 2) throw new Error('no local activity');
  // The ID of an event is its index plus one. Three events are added after the marker: a workflow
  // task.
  const [completed, before, added] = [String(task + 1), marker + 1, 3];
  const again = withIds(events.slice(task - 2, task + 1), (id) => Number(id) + before - (task - 2));
  const after = withIds(events.slice(before), (id, key) => {
    if (key === 'workflowTaskCompletedEventId' && id === completed) return before + added;
    return Number(id) > before ? Number(id) + added : id;
  });
  return historyFromJson({ events: [...events.slice(0, before), ...again, ...after] });
}

function withIds(
  events: readonly RecordedEvent[],
  idOf: (id: string, key: string) => number | string,
): RecordedEvent[] {
  return JSON.parse(JSON.stringify(events), (key, value: unknown) =>
    /eventId$/i.test(key) && value !== '0' ? String(idOf(String(value), key)) : value,
  ) as RecordedEvent[];
}
