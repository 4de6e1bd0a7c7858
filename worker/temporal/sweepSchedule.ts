/** The Schedule that starts a sweep every few minutes: made and kept up to date by whichever worker starts. */
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
  type ScheduleDescription,
} from '@temporalio/client';
import { SWEEP_WORKFLOW, sweepScheduleId } from '../../core/contract/index.ts';

export interface SweepScheduleOptions {
  readonly client: Client;
  readonly taskQueue: string;
  /** How often, in ms; 0: never, and a Schedule that is there is removed. */
  readonly intervalMs: number;
}

/** A sweep that could not begin in time is left to the next one. */
const CATCHUP_MS = 60_000;

/**
 * Makes the Schedule what the settings say. Of one that is there only that is changed: its pause, its note and the input of its sweeps are the operator's. Workers
 * with the same settings do the same, in whatever order; one whose Schedule is as it should be leaves it alone.
 */
export async function ensureSweepSchedule(
  options: SweepScheduleOptions,
): Promise<'made' | 'changed' | 'as it was' | 'removed'> {
  const { client, taskQueue, intervalMs } = options;
  const schedule = client.schedule.getHandle(sweepScheduleId(taskQueue));
  if (intervalMs === 0)
    return await unlessNotFound(
      async () => await schedule.delete().then(() => 'removed' as const),
      'as it was',
    );
  const present = await unlessNotFound(async () => await schedule.describe(), undefined);
  if (present === undefined && (await create(options))) return 'made';
  if (isUpToDate(present ?? (await schedule.describe()), options)) return 'as it was';
  await schedule.update(({ action, policies, state }) => ({
    spec: specOf(options),
    action: { ...action, workflowType: SWEEP_WORKFLOW, taskQueue },
    policies: { ...policies, ...POLICIES },
    state,
  }));
  return 'changed';
}

const POLICIES = { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_MS };

const specOf = ({ intervalMs }: SweepScheduleOptions): { intervals: { every: number }[] } => ({
  intervals: [{ every: intervalMs }],
});

/** @returns false: another worker was faster */
async function create(options: SweepScheduleOptions): Promise<boolean> {
  const { client, taskQueue } = options;
  const scheduleId = sweepScheduleId(taskQueue);
  try {
    await client.schedule.create({
      scheduleId,
      spec: specOf(options),
      action: {
        type: 'startWorkflow',
        workflowType: SWEEP_WORKFLOW,
        workflowId: scheduleId,
        taskQueue,
        args: [],
        staticSummary: 'what workflows, pods and registrations have left behind',
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
