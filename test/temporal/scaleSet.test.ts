import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setWorkflowId } from '../../core/contract/index.ts';
import { describeWithLab } from '../support/lab.ts';
import { notifySet } from '../support/setCommands.ts';
import { scaleSetWorld, type ScaleSetWorld } from '../support/scaleSetWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab('a set that takes its demand from a scale set', { temporal: true }, (lab) => {
  let stage: ScaleSetWorld;
  let name: string;

  beforeEach(async () => {
    stage = await scaleSetWorld(lab);
    name = `set-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => await stage.close());

  const queue = (count = 1, sleepMs = 50): number[] =>
    Array.from(
      { length: count },
      () => stage.simulator.queueJob({ repo: 'acme/web', labels: [name], sleepMs }).id,
    );
  const completed = async (ids: readonly number[]): Promise<void> => {
    for (const id of ids) await stage.simulator.waitForJob(id, 'completed');
  };
  const hasSession = async (): Promise<unknown> =>
    await stage.simulator.waitFor(() => stage.simulator.scaleSet(name)?.session, 'a session');

  test('runs its jobs, leaves nothing, and removes the scale set when it ends', async () => {
    await stage.start(name);
    const jobs = queue(7);
    await completed(jobs);
    await until('no runner to be left', async () => {
      const { runners, jobs: counts } = await stage.status(name);
      return runners.length === 0 && counts.queued === 0 && counts.completedTotal === 7;
    });
    expect(stage.simulator.jobs().map(({ conclusion }) => conclusion)).toEqual(
      jobs.map(() => 'success'),
    );
    expect(stage.simulator.scaleSet(name)).toMatchObject({ unacknowledged: 0, undelivered: 0 });
    // No spare runner: each job had one registration.
    expect(stage.compute.created).toHaveLength(7);
    await notifySet(stage.world.client, name, { command: 'drain', reason: 'over' });
    await stage.world.client.workflow.getHandle(setWorkflowId(name)).result();
    await stage.simulator.waitFor(
      () => stage.simulator.scaleSet(name) === undefined,
      'no scale set',
    );
    await stage.world.client.workflow.getHandle(`scale-set-${name}`).result();
    expect(stage.simulator.runners()).toEqual([]);
  });

  test('a paused set takes no job, and is told of it within a poll', async () => {
    await stage.start(name, { paused: true });
    await hasSession();
    const jobs = queue();
    await notifySet(stage.world.client, name, { command: 'resume' });
    await completed(jobs);
    await notifySet(stage.world.client, name, { command: 'pause', reason: 'rest' });
    await stage.simulator.waitFor(
      () => stage.simulator.scaleSet(name)?.capacity === 0,
      'capacity 0',
    );
    expect(stage.simulator.scaleSet(name)?.capacities).toEqual([0, 5, 0]);
  });

  test('a session that GitHub ends is opened again, and no job is lost', async () => {
    await stage.start(name);
    await hasSession();
    stage.simulator.evictScaleSet(name);
    const jobs = queue(3);
    await completed(jobs);
    await until(
      'the listener to be well',
      async () => (await stage.status(name)).runners.length === 0,
    );
  });

  test('a scale set that is removed at GitHub is created again', async () => {
    await stage.start(name);
    await hasSession();
    const before = stage.simulator.scaleSet(name)?.id;
    stage.simulator.removeScaleSet(name);
    await completed(queue(2));
    expect(stage.simulator.scaleSet(name)?.id).not.toBe(before);
  });

  test('another worker continues the session of one that ended, without a conflict', async () => {
    await stage.start(name);
    await hasSession();
    const session = stage.simulator.scaleSet(name)?.session?.id;
    await stage.world.suspend();
    const jobs = queue(2);
    await stage.world.resume();
    await completed(jobs);
    expect(stage.simulator.scaleSet(name)?.session?.id).toBe(session);
    const counts = stage.simulator.requestCounts().byStatus;
    expect(Object.keys(counts).filter((key) => key.endsWith('sessions 409'))).toEqual([]);
  });
});
