import { randomUUID } from 'node:crypto';
import {
  Client,
  Connection,
  type ScheduleDescription,
  type ScheduleHandle,
} from '@temporalio/client';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { sweepScheduleId } from '../../core/contract/index.ts';
import { ensureSweepSchedule } from '../../worker/temporal/sweepSchedule.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

await describeWithLab("the sweep's Schedule, as workers update it", { temporal: true }, (lab) => {
  let connection: Connection;
  let client: Client;
  let taskQueue: string;

  beforeAll(async () => {
    connection = await Connection.connect({ address: lab.temporal?.address ?? '' });
    client = new Client({ connection });
  });
  afterAll(async () => await connection.close());
  beforeEach(() => void (taskQueue = `test-${randomUUID().slice(0, 8)}`));
  afterEach(async () => void (await keep(0)));

  const keep = async (intervalMs: number): Promise<string> =>
    await ensureSweepSchedule({ client, taskQueue, intervalMs });
  const scheduleHandle = (): ScheduleHandle =>
    client.schedule.getHandle(sweepScheduleId(taskQueue));
  const described = async (): Promise<ScheduleDescription> => await scheduleHandle().describe();
  /** A client that runs `before` between a worker's description of the Schedule and its update. */
  const interposed = (before: () => Promise<void>): Client => {
    const { workflowService } = connection;
    const updateSchedule = async (request: object): Promise<unknown> => {
      await before();
      return await workflowService.updateSchedule(request);
    };
    return new Client({
      connection: Object.create(connection, {
        workflowService: {
          value: Object.create(workflowService, { updateSchedule: { value: updateSchedule } }),
        },
      }) as Connection,
    });
  };

  test('created, unchanged, updated, deleted', async () => {
    expect(await keep(0)).toBe('unchanged');
    expect(await keep(300_000)).toBe('created');
    const { spec, action, policies } = await described();
    expect(spec.intervals).toMatchObject([{ every: 300_000 }]);
    expect(action).toMatchObject({ workflowType: 'sweep', taskQueue });
    expect(policies.overlap).toBe('SKIP');
    expect(await keep(300_000)).toBe('unchanged');
    expect((await described()).info.lastUpdatedAt).toBeUndefined();
    expect(await keep(60_000)).toBe('updated');
    expect((await described()).spec.intervals).toMatchObject([{ every: 60_000 }]);
    expect(await keep(0)).toBe('deleted');
    await expect(described()).rejects.toThrow(/not found/i);
  });

  test('several workers that start together create one, which is valid for each', async () => {
    const done = await Promise.all(Array.from({ length: 8 }, async () => await keep(300_000)));
    expect(done.toSorted()).toEqual(['created', ...Array.from({ length: 7 }, () => 'unchanged')]);
  });

  test('a pause between the description and the update of a worker is kept', async () => {
    await keep(300_000);
    let updates = 0;
    const late = interposed(async () => {
      updates++;
      if (updates === 1) await scheduleHandle().pause('looking into it');
    });
    expect(await ensureSweepSchedule({ client: late, taskQueue, intervalMs: 60_000 })).toBe(
      'updated',
    );
    expect(updates).toBe(2);
    const { spec, state } = await described();
    expect({ intervals: spec.intervals, state }).toMatchObject({
      intervals: [{ every: 60_000 }],
      state: { paused: true, note: 'looking into it' },
    });
  });

  test('a Schedule that others change before each update is not changed, with an error', async () => {
    await keep(300_000);
    let updates = 0;
    const late = interposed(async () => await scheduleHandle().pause(`change ${++updates}`));
    await expect(
      ensureSweepSchedule({ client: late, taskQueue, intervalMs: 60_000 }),
    ).rejects.toThrow(sweepScheduleId(taskQueue));
    expect(updates).toBe(5);
    const { spec, state } = await described();
    expect({ intervals: spec.intervals, state }).toMatchObject({
      intervals: [{ every: 300_000 }],
      state: { paused: true, note: 'change 5' },
    });
  });

  test("an operator's pause, note and input survive a change of the interval", async () => {
    await keep(300_000);
    const handle = scheduleHandle();
    await handle.update(({ spec, action, policies, state }) => ({
      spec,
      policies,
      state,
      action: { ...action, args: [{ scopes: [{ organization: 'acme' }] }] },
    }));
    // The server applies a pause before an update that arrives in the same workflow task, and this
    // update has no conflict token: it would undo the pause.
    await until('the input', async () => (await described()).action.args?.length === 1);
    await handle.pause('looking into it');
    expect(await keep(60_000)).toBe('updated');
    const { spec, state, action } = await described();
    expect({ intervals: spec.intervals, state, args: action.args }).toMatchObject({
      intervals: [{ every: 60_000 }],
      state: { paused: true, note: 'looking into it' },
      args: [{ scopes: [{ organization: 'acme' }] }],
    });
    expect(await keep(60_000)).toBe('unchanged');
  });
});
