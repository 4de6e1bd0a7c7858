/** Schedule that starts sweeps. Each worker creates or updates it at its start. */
import { randomUUID } from 'node:crypto';
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
  type ScheduleDescription,
} from '@temporalio/client';
import proto from '@temporalio/proto';
import { GRPC_NOT_FOUND, grpcStatus } from '../../activities/shared/grpcStatus.ts';
import { SWEEP_WORKFLOW, sweepScheduleId } from '../../core/contract/index.ts';

/** Options for the Schedule of the sweep. */
export interface SweepScheduleOptions {
  readonly client: Client;
  readonly taskQueue: string;
  /** Interval between two sweeps (ms). 0 deletes the Schedule. */
  readonly intervalMs: number;
}

/**
 * Result of {@link ensureSweepSchedule}. `unchanged` means that the Schedule was already correct.
 */
export type SweepScheduleResult = 'created' | 'updated' | 'unchanged' | 'deleted';

/** Catch-up window (ms). A sweep that could not start within it is skipped. */
const CATCHUP_MS = 60_000;
const POLICIES = { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_MS };
/** Maximum number of updates that may lose against concurrent changes before the call fails. */
const MAX_CONFLICTS = 5;

/**
 * Creates the Schedule, or brings its interval, workflow type, task queue and policies up to date.
 * The pause, the note and the input of the sweeps belong to the operator and are kept.
 * Workers with the same settings may call it at the same time.
 * @throws Error if others change the Schedule before each of several updates
 */
export async function ensureSweepSchedule(
  options: SweepScheduleOptions,
): Promise<SweepScheduleResult> {
  const { client, taskQueue, intervalMs } = options;
  const scheduleId = sweepScheduleId(taskQueue);
  const schedule = client.schedule.getHandle(scheduleId);
  if (intervalMs === 0)
    return await unlessNotFound(
      async () => await schedule.delete().then(() => 'deleted' as const),
      'unchanged',
    );
  let updated = false;
  for (let conflicts = 0; conflicts <= MAX_CONFLICTS; conflicts++) {
    const present = await unlessNotFound(async () => await schedule.describe(), undefined);
    if (present === undefined) {
      if (await create(options)) return 'created';
    } else if (isUpToDate(present, options)) {
      return updated ? 'updated' : 'unchanged';
    } else if (conflicts < MAX_CONFLICTS) {
      await update(present, options);
      updated = true;
    }
  }
  throw new Error(
    `failed to update Schedule ${scheduleId}: others changed it before each of ${MAX_CONFLICTS} updates`,
  );
}

/**
 * Creates the Schedule.
 * @returns false if another worker has created it meanwhile
 */
async function create(options: SweepScheduleOptions): Promise<boolean> {
  const { client, taskQueue, intervalMs } = options;
  const scheduleId = sweepScheduleId(taskQueue);
  try {
    await client.schedule.create({
      scheduleId,
      spec: { intervals: [{ every: intervalMs }] },
      action: {
        type: 'startWorkflow',
        workflowType: SWEEP_WORKFLOW,
        workflowId: scheduleId,
        taskQueue,
        args: [],
        staticSummary: 'objects that workflows, pods and registrations have left behind',
      },
      policies: POLICIES,
      state: { note: 'Kept by the Holdfast workers (HOLDFAST_SWEEP_INTERVAL). It may be paused.' },
    });
    return true;
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return false;
    throw error;
  }
}

/**
 * Requests an update of the described Schedule. The server drops it without an error if the
 * Schedule has changed since: describe it again. The SDK's `handle.update()` sends no conflict
 * token, so it overwrites whatever changed in between.
 */
async function update(
  { raw: { schedule, conflictToken } }: ScheduleDescription,
  { client, taskQueue, intervalMs }: SweepScheduleOptions,
): Promise<void> {
  const { SCHEDULE_OVERLAP_POLICY_SKIP } = proto.temporal.api.enums.v1.ScheduleOverlapPolicy;
  try {
    await client.workflowService.updateSchedule({
      namespace: client.options.namespace,
      scheduleId: sweepScheduleId(taskQueue),
      schedule: {
        ...schedule,
        spec: { interval: [{ interval: durationOf(intervalMs) }] },
        action: {
          startWorkflow: {
            ...schedule?.action?.startWorkflow,
            workflowType: { name: SWEEP_WORKFLOW },
            taskQueue: { name: taskQueue },
          },
        },
        policies: {
          ...schedule?.policies,
          catchupWindow: durationOf(CATCHUP_MS),
          overlapPolicy: SCHEDULE_OVERLAP_POLICY_SKIP,
        },
      },
      conflictToken: conflictToken ?? null,
      identity: client.options.identity,
      requestId: randomUUID(),
    });
  } catch (error) {
    if (grpcStatus(error)?.code !== GRPC_NOT_FOUND) throw error;
  }
}

const durationOf = (ms: number): proto.google.protobuf.Duration =>
  proto.google.protobuf.Duration.fromObject({
    seconds: Math.trunc(ms / 1000),
    nanos: (ms % 1000) * 1_000_000,
  });

function isUpToDate(
  { spec, action, policies }: ScheduleDescription,
  { intervalMs, taskQueue }: SweepScheduleOptions,
): boolean {
  const [interval, ...others] = [...(spec.intervals ?? []), ...(spec.calendars ?? [])];
  const isEvery =
    interval !== undefined &&
    'every' in interval &&
    interval.every === intervalMs &&
    others.length === 0;
  return (
    isEvery &&
    action.workflowType === SWEEP_WORKFLOW &&
    action.taskQueue === taskQueue &&
    policies.overlap === POLICIES.overlap &&
    policies.catchupWindow === POLICIES.catchupWindow
  );
}

async function unlessNotFound<T, U>(ask: () => Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return otherwise;
    throw error;
  }
}
