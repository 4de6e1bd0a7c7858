import { DefaultLogger, Runtime, Worker, type ReplayWorkerOptions } from '@temporalio/worker';
import type { RecordedHistory } from './histories.ts';
import { historyFromJson } from './historyJson.ts';

// A replay that fails on purpose would log a lot.
Runtime.install({
  logger: new DefaultLogger('ERROR', () => undefined),
  telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
});

/** Replays the histories. @returns the error of each by its file; `undefined` for one that the workflows replay */
export async function replayAll(
  histories: readonly RecordedHistory[],
  workflows: ReplayWorkerOptions,
): Promise<Map<string, Error | undefined>> {
  const results = new Map<string, Error | undefined>();
  const replayed = histories.map(({ workflowId, text }) => ({
    workflowId,
    history: historyFromJson(JSON.parse(text)),
  }));
  let index = 0;
  for await (const { error } of Worker.runReplayHistories(workflows, replayed))
    results.set(histories[index++]?.file ?? '', error);
  return results;
}
