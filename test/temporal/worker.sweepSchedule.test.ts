import { randomUUID } from 'node:crypto';
import { Client, Connection, type ScheduleDescription } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { sweepScheduleId } from '../../core/contract/index.ts';
import { ensureSweepSchedule } from '../../worker/temporal/sweepSchedule.ts';
import { describeWithLab } from '../support/lab.ts';

await describeWithLab("the sweep's Schedule, as the workers keep it", { temporal: true }, (lab) => {
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
  const described = async (): Promise<ScheduleDescription> =>
    await client.schedule.getHandle(sweepScheduleId(taskQueue)).describe();

  test('made, found as it is, changed, removed', async () => {
    expect(await keep(0)).toBe('as it was');
    expect(await keep(300_000)).toBe('made');
    const { spec, action, policies } = await described();
    expect(spec.intervals).toMatchObject([{ every: 300_000 }]);
    expect(action).toMatchObject({ workflowType: 'sweep', taskQueue });
    expect(policies.overlap).toBe('SKIP');
    expect(await keep(300_000)).toBe('as it was');
    expect((await described()).info.lastUpdatedAt).toBeUndefined();
    expect(await keep(60_000)).toBe('changed');
    expect((await described()).spec.intervals).toMatchObject([{ every: 60_000 }]);
    expect(await keep(0)).toBe('removed');
    await expect(described()).rejects.toThrow(/not found/i);
  });

  test('several workers that start together make one, and each is content with it', async () => {
    const done = await Promise.all(Array.from({ length: 8 }, async () => await keep(300_000)));
    expect(done.toSorted()).toEqual([...Array.from({ length: 7 }, () => 'as it was'), 'made']);
  });

  test("an operator's pause, note and input outlast a change of the interval", async () => {
    await keep(300_000);
    const handle = client.schedule.getHandle(sweepScheduleId(taskQueue));
    await handle.update(({ spec, action, policies, state }) => ({
      spec,
      policies,
      state,
      action: { ...action, args: [{ scopes: [{ organization: 'acme' }] }] },
    }));
    await handle.pause('looking into it');
    expect(await keep(60_000)).toBe('changed');
    const { spec, state, action } = await described();
    expect({ intervals: spec.intervals, state, args: action.args }).toMatchObject({
      intervals: [{ every: 60_000 }],
      state: { paused: true, note: 'looking into it' },
      args: [{ scopes: [{ organization: 'acme' }] }],
    });
    expect(await keep(60_000)).toBe('as it was');
  });
});
