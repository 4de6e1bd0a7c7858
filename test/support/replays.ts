import type { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { workflowsFor } from '../../worker/workflowBundle.ts';
import type { History } from '../replay/historyJson.ts';

/** The histories of a workflow's runs, from the first to the one of now, by what each says of the next: visibility may be late. */
export async function chainOf({ workflow }: Client, workflowId: string): Promise<History[]> {
  const { raw } = await workflow.getHandle(workflowId).describe();
  const chain: History[] = [];
  for (let runId = raw.workflowExecutionInfo?.firstRunId ?? undefined; runId; ) {
    const history = await workflow.getHandle(workflowId, runId).fetchHistory();
    chain.push(history);
    const { workflowExecutionContinuedAsNewEventAttributes: next } = history.events?.at(-1) ?? {};
    runId = next?.newExecutionRunId ?? undefined;
  }
  return chain;
}

/** What the histories of these workflows' runs say against the workflows' code: nothing, when it is deterministic. */
export async function unreplayable(client: Client, workflowIds: readonly string[]): Promise<string[]> {
  const histories: { workflowId: string; history: History }[] = [];
  for (const workflowId of workflowIds) {
    // A run that has only just begun has nothing to replay, and the replayer would wait for it without end.
    const runs = (await chainOf(client, workflowId)).filter(({ events }) => events?.some(({ workflowTaskCompletedEventAttributes: done }) => done !== null && done !== undefined) === true);
    histories.push(...runs.map((history) => ({ workflowId, history })));
  }
  const faults: string[] = [];
  for await (const { workflowId, error } of Worker.runReplayHistories(await workflowsFor({}), histories)) if (error) faults.push(`${workflowId}: ${String(error)}`);
  return faults;
}
