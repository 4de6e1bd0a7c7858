import { expect } from '@jest/globals';
import { cancelSignal } from '../../core/contract/index.ts';
import { HELD_JOB, countingJob } from './clusterRun.ts';
import { until } from './until.ts';
import type { ClusterWorld } from './clusterWorld.ts';

/**
 * The runners of the demo with pods. The checks hold for every way in which the worker learns of
 * events.
 */
export const demoRunners = {
  'an ephemeral runner whose job succeeds': async (world: ClusterWorld) => {
    const run = await world.start('succeeds');
    const job = run.queueJob(countingJob(3));
    const result = await run.ends();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      exitCode: 0,
      attempt: 1,
      replacements: [],
    });
    run.expectUnharmed(job);
    expect(run.job(job).runner_name).toBe(result.runnerName);
    expect({ pods: run.podsEver().length, registered: run.registeredEver() }).toEqual({
      pods: 1,
      registered: 1,
    });
  },

  'a static runner drained while busy: rejected (422) at least three times, then deleted': async (
    world: ClusterWorld,
  ) => {
    const run = await world.start('drained', { ephemeral: false });
    const first = await run.runJob(countingJob(1));
    await run.waitForLine(first, 'finished');
    const job = await run.runJob(HELD_JOB);
    await run.drain('node maintenance');
    await until('three refusals', () => run.requests('DELETE', 422).length >= 3);
    await run.letGo();
    const result = await run.ends();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      attempt: 1,
      message: expect.stringContaining('node maintenance'),
    });
    // With several workers a cancelled attempt may be in another worker's count.
    expect(result.unregisterAttempts).toBeGreaterThanOrEqual(world.workers.length > 1 ? 1 : 4);
    expect(result.phases.map(({ phase }) => phase)).toContain('Draining');
    run.expectUnharmed(first);
    run.expectUnharmed(job);
    expect(run.job(job).runner_id).toBe(run.job(first).runner_id);
    expect(run.podsEver()).toHaveLength(1);
  },

  'a runner cancelled while busy: its job is interrupted, not killed': async (
    world: ClusterWorld,
  ) => {
    const run = await world.start('stopped');
    const job = await run.runJob(countingJob(600));
    await run.handle.signal(cancelSignal, { reason: 'by hand', mode: 'stop' });
    const result = await run.ends();
    expect(result).toMatchObject({
      outcome: 'aborted',
      cause: 'cancelled',
      attempt: 1,
      message: expect.stringContaining('by hand'),
    });
    run.expectInterrupted(job);
    expect(run.requests('DELETE', 422).length).toBeGreaterThanOrEqual(1);
  },

  'a runner cancelled by force while busy: killed at once, its registration removed once it is free':
    async (world: ClusterWorld) => {
      const run = await world.start('forced');
      const job = await run.runJob(countingJob(600));
      await run.handle.signal(cancelSignal, { mode: 'force' });
      const result = await run.ends();
      expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
      run.expectHandOffIfRejected(result);
      run.expectForced(job);
    },

  'a runner whose pod vanishes while idle: replaced under a new name': async (
    world: ClusterWorld,
  ) => {
    const run = await world.start('vanishes');
    const { pod, runnerName: lost } = await run.listens();
    await run.deletePod(pod, 0);
    const { runnerName } = await run.listens(2);
    expect(runnerName).not.toBe(lost);
    const job = run.queueJob(countingJob(2));
    const result = await run.ends();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      runnerName,
      replacements: [{ runnerName: lost, cause: 'deleted_externally', replacedBy: runnerName }],
    });
    run.expectUnharmed(job);
    expect(run.job(job).runner_name).toBe(runnerName);
    expect({ pods: run.podsEver().length, registered: run.registeredEver() }).toEqual({
      pods: 2,
      registered: 2,
    });
  },
} as const;

/** The expected reports with any number of workers. */
export const reportedOnce = {
  'no change between idle and busy is reported twice': async (world: ClusterWorld) => {
    const reported = await Promise.all(world.runs.map(async (run) => await run.podStates()));
    // Which of two changes in quick succession is reported depends on the watcher. Neighbors must
    // differ, because no state is reported twice.
    for (const states of reported)
      expect(states.filter((state, index) => index > 0 && state === states[index - 1])).toEqual([]);
    expect(reported.flat().length).toBeGreaterThan(0);
  },
} as const;

/** The expected state of a world after the end of all runners. */
export const cleanEnd = {
  'nothing is left: no pod, Secret, registration or running workflow': async (
    world: ClusterWorld,
  ) => {
    expect(world.runs.length).toBeGreaterThan(0);
    await world.expectNothingLeft();
  },
  'no token and no JIT config in any history, log or pod spec': async (world: ClusterWorld) => {
    expect(await world.secretsInClear()).toEqual([]);
  },
} as const;
