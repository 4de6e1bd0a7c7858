/** Pending activities of a runner, with attempts, the last failure and the next retry. */
import type { DescribeWorkflowExecutionResponse } from '@temporalio/client';
import type { LoadedDataConverter, Payload } from '@temporalio/common';
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { failureText, decodeFirstPayload } from './encodedFields.ts';

/** Pending activity of a runner. Times in ISO 8601. */
export interface PendingActivity {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  /** Task queue of the activity. */
  readonly taskQueue?: string;
  readonly attempt: number;
  /** Progress from its last heartbeat. */
  readonly progress?: string;
  readonly lastFailure?: string;
  /** Type of the last failure, such as `RateLimited`. Absent for a timeout. */
  readonly lastFailureType?: string;
  readonly lastStartedAt?: string;
  /** Time of the next retry, while the activity waits for it. */
  readonly nextRetryAt?: string;
}

type RawActivity = NonNullable<DescribeWorkflowExecutionResponse['pendingActivities']>[number];

// temporal.api.enums.v1.PendingActivityState
const STATES = ['unknown', 'scheduled', 'started', 'cancel requested', 'paused', 'pause requested'];

/**
 * Returns the pending activities of a workflow.
 * @throws PayloadKeyError
 */
export async function pendingActivities(
  description: DescribeWorkflowExecutionResponse,
  converter: LoadedDataConverter,
): Promise<PendingActivity[]> {
  return await Promise.all(
    (description.pendingActivities ?? []).map(async (raw) => {
      const lastFailure = await failureText(converter, raw.lastFailure);
      const progress = progressOf(
        await decodeFirstPayload(converter, raw.heartbeatDetails?.payloads),
      );
      const lastFailureType = raw.lastFailure?.applicationFailureInfo?.type || undefined;
      const taskQueue = raw.activityOptions?.taskQueue?.name ?? undefined;
      const lastStartedAt = toIso(raw.lastStartedTime);
      const nextRetryAt =
        raw.state === 1 && (raw.attempt ?? 1) > 1
          ? (toIso(raw.nextAttemptScheduleTime) ?? toIso(raw.scheduledTime))
          : undefined;
      return {
        id: raw.activityId ?? '',
        type: raw.activityType?.name ?? '',
        state: STATES[raw.state ?? 0] ?? 'unknown',
        attempt: raw.attempt ?? 1,
        ...omitUndefined({
          taskQueue,
          progress,
          lastFailure,
          lastFailureType,
          lastStartedAt,
          nextRetryAt,
        }),
      };
    }),
  );
}

/** Returns the progress in a heartbeat. Only heartbeats of Holdfast's activities have it. */
function progressOf(payload: Payload | undefined): string | undefined {
  if (
    !payload?.data ||
    Buffer.from(payload.metadata?.['encoding'] ?? []).toString() !== 'json/plain'
  )
    return undefined;
  const details = JSON.parse(Buffer.from(payload.data).toString()) as { progress?: unknown } | null;
  return typeof details?.progress === 'string' ? details.progress : undefined;
}

function toIso(time: RawActivity['scheduledTime']): string | undefined {
  if (!time) return undefined;
  const ms = Number(time.seconds ?? 0) * 1_000 + Math.floor((time.nanos ?? 0) / 1_000_000);
  return ms <= 0 ? undefined : new Date(ms).toISOString();
}
