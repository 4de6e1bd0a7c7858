import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { describeWithLab } from '../support/lab.ts';
import { scaleSetWorld, type ScaleSetWorld } from '../support/scaleSetWorld.ts';
import { until } from '../support/until.ts';

/** No job ends during the test. */
const JOB_MS = 600_000;

await describeWithLab('a set whose cluster has room for some', { temporal: true }, (lab) => {
  let stage: ScaleSetWorld;
  let name: string;

  beforeEach(async () => {
    stage = await scaleSetWorld(lab);
    name = `set-${randomUUID().slice(0, 8)}`;
  });
  afterEach(async () => await stage.close());

  const advertised = (): number => stage.simulator.scaleSet(name)?.capacity ?? 0;

  test('claims what the cluster has room for, and uses new room soon', async () => {
    stage.compute.setRoom(3);
    for (let job = 0; job < 30; job++)
      stage.simulator.queueJob({ repo: 'acme/web', labels: [name], sleepMs: JOB_MS });
    await stage.start(name, { max: 12, capacity: 'observed', scaleDownDelay: '10m' });
    await until('the set to know its room', () => advertised() === 4);
    const { clusterLimit, waits, max } = await stage.status(name);
    expect([max, clusterLimit]).toMatchObject([
      12,
      { limit: 3, reason: 'pods unschedulable (Insufficient cpu)' },
    ]);
    expect(waits?.map(({ cause }) => cause)).toContain('capacity');
    // The probe leaves before it has been pending for a minute, and its registration with it. A busy
    // machine may take longer.
    await until('the probe to be withdrawn', () => advertised() === 3);
    await until('no pod to wait', () => stage.compute.pods.size === 3);
    await stage.simulator.waitFor(() => stage.simulator.runners().length === 3, '3 runners');
    expect(stage.compute.longestWaitMs).toBeLessThan(90_000);
    stage.compute.setRoom(10);
    await until('the room to be used', () => stage.compute.placed === 10, undefined, 90_000);
    stage.compute.setRoom(12);
    await until('no limit', async () => (await stage.status(name)).clusterLimit === undefined);
    expect(advertised()).toBe(12);
  }, 300_000);
});
