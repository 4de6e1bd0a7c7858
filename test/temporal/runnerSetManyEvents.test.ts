import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runsOf } from '../../tools/bench/sets.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { SET_ROUTING_MEMO, type JobEvent, type RunnerSetInput } from '../../core/contract/index.ts';

await describeWithLab('a set with many job events', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  const start = async (input: Partial<RunnerSetInput>): Promise<SetRun> =>
    await SetRun.start({ world, compute, ci }, { minIdle: 0, max: 5, ...input });

  async function endsClean(set: SetRun): Promise<void> {
    await set.end();
    expectNothingLeft({ compute, ci });
  }

  test('handles 100,000 job events without a loss, in short histories', async () => {
    const set = await start({ paused: true, queueCheck: '0s', max: 3 });
    const jobs = 30_000;
    const perSignal = 100;
    const events: JobEvent[] = [];
    for (let jobId = 1; jobId <= jobs; jobId++) {
      const runner = `${set.name}-abcdefghij-0a1b2`;
      const mine = [
        set.event('queued', jobId),
        set.event('in_progress', jobId),
        set.event('completed', jobId, runner),
      ];
      // The last hundred jobs go on waiting, and every tenth event comes twice.
      for (const event of jobId > jobs - 100 ? mine.slice(0, 1) : mine)
        events.push(event, ...(events.length % 10 === 0 ? [event] : []));
    }
    expect(events.length).toBeGreaterThan(98_000);
    // Out of order within a window, as deliveries are.
    const batches: JobEvent[][] = [];
    for (let at = 0; at < events.length; at += perSignal * 8) {
      const window = events
        .slice(at, at + perSignal * 8)
        .toSorted((a, b) => ((Number(a.jobId) * 7_919) % 101) - ((Number(b.jobId) * 7_919) % 101));
      while (window.length > 0) batches.push(window.splice(0, perSignal));
    }
    // Bursts of 50 signals; the next when the set has taken them in, or a machine under load would only test its own backlog.
    while (batches.length > 0) {
      await Promise.all(batches.splice(0, 50).map(async (batch) => await set.tell(...batch)));
      await set.status();
    }
    const last = await set.reaches(
      'every event',
      (status) => status.jobs.completedTotal === jobs - 100 && status.jobs.queued === 100,
      90_000,
    );
    expect(last).toMatchObject({
      desired: 3,
      jobs: { queued: 100, running: 0, startedTotal: jobs - 100 },
    });

    const { events: history } = await set.handle.fetchHistory();
    expect(
      Object.keys(history?.[0]?.workflowExecutionStartedEventAttributes?.memo?.fields ?? {}),
    ).toEqual([SET_ROUTING_MEMO]);
    // The set's own, in whichever run.
    expect((await set.handle.describe()).priority?.priorityKey).toBe(1);
    const runs = await runsOf(world.client, set.handle.workflowId);
    for (const { historyLength, historyBytes } of runs) {
      expect(historyLength).toBeLessThan(4_096);
      // Temporal suggests to continue as new at 4 MiB; a burst of 50 signals is 1.3 MiB.
      expect(historyBytes).toBeLessThan(8 * 1_024 * 1_024);
    }
    const carried = runs.map(({ carriedBytes }) => carriedBytes);
    expect(carried.length).toBeGreaterThan(3);
    // 20,000 jobs are remembered after their end, ten bytes each: a set that remembered all of them would be past this.
    expect(Math.max(...carried)).toBeLessThan(250_000);
    process.stderr.write(
      `figures: bytes carried from run to run, the newest first: ${carried.join(', ')}\n`,
    );
    await endsClean(set);
  }, 180_000);
});
