import { expect } from '@jest/globals';
import type { RunnerResult } from '../../core/contract/index.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { countingJob } from '../support/clusterRun.ts';
import { cleanEnd } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';

/** Ways to lose a runner's pod; each must end the same whether job events arrive or not. */
const losses: Record<string, Scenario<ClusterWorld>> = {
  'evicted while idle: replaced, and the old registration removed': async (world) => {
    const run = await world.start('evicted-idle');
    const { pod, runnerName: lost } = await run.listens();
    await run.evict(pod);
    const { runnerName } = await run.listens(2);
    expect(run.registrations().map(({ name }) => name)).toEqual([runnerName]);
    const job = run.queueJob(countingJob(2));
    const result = await run.ends();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      replacements: [{ runnerName: lost, cause: 'evicted', replacedBy: runnerName }],
    });
    run.expectUnharmed(job);
    expect({ pods: run.podsEver().length, registered: run.registeredEver() }).toEqual({
      pods: 2,
      registered: 2,
    });
  },

  'evicted while busy, onEviction fail: the job gets its grace, the verdict is errored/evicted':
    async (world) => {
      const run = await world.start('evicted-busy');
      const job = await run.runJob(countingJob(600));
      const { pod } = await run.listens();
      await run.evict(pod);
      expect(await run.ends()).toMatchObject({ outcome: 'errored', cause: 'evicted', attempt: 1 });
      run.expectInterrupted(job);
      expect(run.podsEver()).toHaveLength(1);
    },

  'evicted while busy, onEviction replace: a new runner for whoever queues again': async (
    world,
  ) => {
    const run = await world.start('evicted-replaced', { onEviction: 'replace' });
    const lostJob = await run.runJob(countingJob(600));
    const { pod, runnerName: lost } = await run.listens();
    await run.evict(pod);
    const { runnerName } = await run.listens(2);
    run.expectInterrupted(lostJob);
    const job = run.queueJob(countingJob(2));
    expect(await run.ends()).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      replacements: [{ runnerName: lost, cause: 'evicted', replacedBy: runnerName }],
    });
    run.expectUnharmed(job);
  },

  'a static runner evicted while idle: replaced, and the old registration removed': async (
    world,
  ) => {
    const run = await world.start('static-evicted', { ephemeral: false });
    const { pod, runnerName: lost } = await run.listens();
    await run.evict(pod);
    const { runnerName } = await run.listens(2);
    const job = await run.runJob(countingJob(1));
    await run.waitForLine(job, 'finished');
    await run.drain();
    expect(await run.ends()).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      replacements: [{ runnerName: lost, cause: 'evicted', replacedBy: runnerName }],
    });
    run.expectUnharmed(job);
  },

  'force-deleted while busy: errored, and the dead runner’s registration removed once it is free':
    async (world) => {
      const run = await world.start('killed-busy');
      const job = await run.runJob(countingJob(600));
      const { pod } = await run.listens();
      await run.deletePod(pod, 0);
      const result = await run.ends();
      expect(result).toMatchObject({ outcome: 'errored', cause: 'deleted_externally', attempt: 1 });
      run.expectHandOffIfRejected(result);
      run.expectForced(job);
    },

  'deleted while busy, with grace: the job gets it, the verdict is errored/deleted_externally':
    async (world) => {
      const run = await world.start('deleted-busy');
      const job = await run.runJob(countingJob(600));
      const { pod } = await run.listens();
      await run.deletePod(pod, 30);
      expect(await run.ends()).toMatchObject({
        outcome: 'errored',
        cause: 'deleted_externally',
        attempt: 1,
      });
      run.expectInterrupted(job);
    },
};

/** @param expected - what it counts as: only a pod under the supervisor tells that it ended without a job */
const unregistered = (expected: Partial<RunnerResult>): typeof losses => ({
  'its registration is removed from outside while idle: it ends by itself': async (world) => {
    const run = await world.start('unregistered');
    await run.listens();
    const [registration] = run.registrations();
    expect(world.simulator.removeRunner(registration!.id)).toBe(true);
    const { outcome, cause, attempt } = await run.ends();
    expect({ outcome, cause, attempt }).toEqual({ cause: undefined, ...expected, attempt: 1 });
  },
});

await describeWithLab('losing the pod', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () => await ClusterWorld.open(lab),
    { ...losses, ...unregistered({ outcome: 'errored', cause: 'deleted_externally' }) },
    { afterwards: cleanEnd },
  );
});

await describeWithLab(
  'losing the pod, without job events',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    together(
      async () => await ClusterWorld.open(lab, { webhook: false, supervisor: false }),
      { ...losses, ...unregistered({ outcome: 'succeeded' }) },
      { afterwards: cleanEnd },
    );
  },
);
