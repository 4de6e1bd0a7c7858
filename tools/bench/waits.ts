import type { Client } from '@temporalio/client';
import { parseWaitActivityId } from '../../core/domain/podConditions.ts';

/** Completion of a workflow's wait for the end of its runner, from its history. */
export interface CompletedWait {
  /** Time of completion, by the server's clock (ms since the epoch). */
  readonly completedAt: number;
  /** Identity of the worker that had started it. */
  readonly startedBy: string;
}

/** Returns the completion, or `undefined` if the wait was not completed. */
export async function completedEndWait(
  client: Client,
  workflowId: string,
): Promise<CompletedWait | undefined> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const scheduled = events?.find(
    (event) =>
      parseWaitActivityId(event.activityTaskScheduledEventAttributes?.activityId ?? '')
        ?.condition === 'ended',
  );
  if (!scheduled) return undefined;
  const completed = events?.find(
    (event) =>
      String(event.activityTaskCompletedEventAttributes?.scheduledEventId) ===
      String(scheduled.eventId),
  );
  const started = events?.find(
    (event) =>
      String(event.eventId) ===
      String(completed?.activityTaskCompletedEventAttributes?.startedEventId),
  );
  const time = completed?.eventTime;
  if (!time || !started) return undefined;
  return {
    completedAt: Number(time.seconds ?? 0) * 1_000 + (time.nanos ?? 0) / 1e6,
    startedBy: started.activityTaskStartedEventAttributes?.identity ?? '',
  };
}
