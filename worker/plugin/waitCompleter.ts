/** Completes, through Temporal's API, the activities that have freed their slots. */
import { randomUUID } from 'node:crypto';
import {
  ActivityNotFoundError,
  WorkflowNotFoundError,
  isGrpcServiceError,
  type Client,
} from '@temporalio/client';
import { applicationFailure } from '../../activities/shared/failures.ts';
import { GRPC_NOT_FOUND } from '../../activities/shared/grpcStatus.ts';
import { forWorkflow } from '../../activities/runner/pods.ts';
import type { ActivityTask } from '../../activities/watcher/deferredCompletions.ts';
import type { WaitCompleter } from '../../activities/ports/waitCompleter.ts';
import { FAILURE_TYPES } from '../../core/activities/index.ts';
import { podStateSignal } from '../../core/contract/index.ts';
import { parseWaitActivityId } from '../../core/domain/podConditions.ts';
import { runningRunnersInQuery } from '../../core/domain/visibility.ts';

/**
 * Maximum number of concurrent `describe` calls while searching for waits that a dead worker left
 * behind.
 */
const DESCRIBE_CONCURRENCY = 32;
/** Pending activity states, from temporal.api.enums.v1.PendingActivityState: only a started activity can be completed from outside. */
const STARTED = 2;

/** Options of {@link createWaitCompleter}. */
export interface CompleterOptions {
  /** Returns the current client. */
  readonly client: () => Client;
  /**
   * Task queue of the runner workflows whose waits are listed. Pods of other installations are not
   * in the watch.
   */
  readonly taskQueue: string;
}

/** Creates the completer with which the watcher completes, retries and finds waits in Temporal. */
export function createWaitCompleter({ client, taskQueue }: CompleterOptions): WaitCompleter {
  return {
    complete: async (workflowId, activityId, result) =>
      await hasPendingActivity(
        client().activity.complete({ workflowId, activityId }, forWorkflow(result)),
      ),
    async requestRecheck(workflowId, activityId, reason): Promise<void> {
      // A failure makes the server schedule the next attempt. It is expected and has no delay.
      const again = applicationFailure(reason, FAILURE_TYPES.notVisible, {
        nextRetryDelayMs: 1,
        expected: true,
      });
      await hasPendingActivity(client().activity.fail({ workflowId, activityId }, again));
    },
    completeDeferred: async (task, result) =>
      await hasPendingActivity(completeTask(client(), task, result)),

    async signalPodState(workflowId, state, changeId = randomUUID()): Promise<void> {
      try {
        await signalOnce(client(), {
          workflowId,
          signalName: podStateSignal.name,
          arg: state,
          requestId: changeId,
        });
      } catch (error) {
        if (!isGrpcServiceError(error) || error.code !== GRPC_NOT_FOUND) throw error;
      }
    },

    async *pendingWaits(place, except): AsyncGenerator<{ workflowId: string; activityId: string }> {
      let batch: string[] = [];
      for await (const { workflowId } of client().workflow.list({
        query: runningRunnersInQuery(taskQueue, place),
        pageSize: 1000,
      })) {
        if (except.has(workflowId)) continue;
        batch.push(workflowId);
        if (batch.length < DESCRIBE_CONCURRENCY) continue;
        yield* await pendingWaits(client(), batch);
        batch = [];
      }
      yield* await pendingWaits(client(), batch);
    },
  };
}

/**
 * Completes an activity by its task token. The token does not contain the workflow that the codec
 * encrypts for.
 */
async function completeTask(
  client: Client,
  { taskToken, ...activity }: ActivityTask,
  result: unknown,
): Promise<void> {
  const { namespace } = client.options;
  await client.activity.complete(taskToken, result, {
    serializationContext: { type: 'activity', namespace, isLocal: false, ...activity },
  });
}

/**
 * Sends a signal that the server drops if the same run had one with this request ID. Several
 * workers see the same change, and a repeated signal would be an event of history that no handler
 * can undo. The client's own call creates a new ID each time.
 */
async function signalOnce(
  client: Client,
  {
    workflowId,
    signalName,
    arg,
    requestId,
  }: { workflowId: string; signalName: string; arg: unknown; requestId: string },
): Promise<void> {
  const { namespace, identity, loadedDataConverter } = client.options;
  let payloads = [loadedDataConverter.payloadConverter.toPayload(arg)];
  const context = { type: 'workflow', namespace, workflowId } as const;
  for (const codec of loadedDataConverter.payloadCodecs)
    payloads = await codec.encode(payloads, context);
  await client.workflowService.signalWorkflowExecution({
    namespace,
    identity,
    requestId,
    signalName,
    workflowExecution: { workflowId },
    input: { payloads },
  });
}

async function hasPendingActivity(completion: Promise<void>): Promise<boolean> {
  try {
    await completion;
    return true;
  } catch (error) {
    if (error instanceof ActivityNotFoundError) return false;
    throw error;
  }
}

async function pendingWaits(
  client: Client,
  workflowIds: readonly string[],
): Promise<{ workflowId: string; activityId: string }[]> {
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
      .filter(
        (activity) =>
          activity.state === STARTED &&
          parseWaitActivityId(activity.activityId ?? '') !== undefined,
      )
      .map((activity) => activity.activityId ?? '');
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return []; // ended and deleted since the list was taken
    throw error;
  }
}
