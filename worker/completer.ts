/** Answers, through Temporal's API, the activities that gave their slot back. */
import { ActivityNotFoundError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import type { WaitCompleter } from '../activities/ports.ts';
import { podStateSignal } from '../core/contract/index.ts';
import { parseWaitActivityId } from '../core/domain/podConditions.ts';
import { runningRunners } from '../core/domain/visibility.ts';

/** `describe` calls under way at once while looking for waits that a dead worker left behind. */
const DESCRIBE_CONCURRENCY = 32;
/** Pending activity states, from temporal.api.enums.v1.PendingActivityState: only a started activity can be completed from outside. */
const STARTED = 2;

export interface CompleterOptions {
  readonly client: Client;
  /** Waits are looked for among the runners of this task queue only: another installation's pods are not ours to miss. */
  readonly taskQueue: string;
}

export function createCompleter({ client, taskQueue }: CompleterOptions): WaitCompleter {
  return {
    complete: async (workflowId, activityId, result) => await wasPending(client.activity.complete({ workflowId, activityId }, result)),
    answer: async (taskToken, result) => await wasPending(client.activity.complete(taskToken, result)),

    async signalPodState(workflowId, state): Promise<void> {
      try {
        await client.workflow.getHandle(workflowId).signal(podStateSignal, state);
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },

    async *pendingWaits(except: ReadonlySet<string>): AsyncGenerator<{ workflowId: string; activityId: string }> {
      let batch: string[] = [];
      for await (const { workflowId } of client.workflow.list({ query: runningRunners(taskQueue), pageSize: 1000 })) {
        if (except.has(workflowId)) continue;
        batch.push(workflowId);
        if (batch.length < DESCRIBE_CONCURRENCY) continue;
        yield* await waitsOf(client, batch);
        batch = [];
      }
      yield* await waitsOf(client, batch);
    },
  };
}

async function wasPending(completion: Promise<void>): Promise<boolean> {
  try {
    await completion;
    return true;
  } catch (error) {
    if (error instanceof ActivityNotFoundError) return false;
    throw error;
  }
}

async function waitsOf(client: Client, workflowIds: readonly string[]): Promise<{ workflowId: string; activityId: string }[]> {
  const found = await Promise.all(
    workflowIds.map(async (workflowId) => {
      const pending = await pendingActivities(client, workflowId);
      return pending.map((activityId) => ({ workflowId, activityId }));
    }),
  );
  return found.flat();
}

async function pendingActivities(client: Client, workflowId: string): Promise<string[]> {
  try {
    const { raw } = await client.workflow.getHandle(workflowId).describe();
    return (raw.pendingActivities ?? [])
      .filter((activity) => activity.state === STARTED && parseWaitActivityId(activity.activityId ?? '') !== undefined)
      .map((activity) => activity.activityId ?? '');
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return []; // ended and deleted since the list was taken
    throw error;
  }
}
