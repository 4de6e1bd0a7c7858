import { expect } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { countingJob } from '../support/clusterRun.ts';
import { cleanEnd, demoRunners } from '../support/demoRunners.ts';
import { readable } from '../support/secretSearch.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';

const MUTED = fileURLToPath(new URL('../support/mutedWorker.ts', import.meta.url));

const lives: Record<string, Scenario<ClusterWorld>> = {
  ...demoRunners,

  'a busy runner that is evicted': async (world) => {
    const run = await world.start('evicted');
    const job = await run.runJob(countingJob(600));
    const { pod } = await run.listens();
    await run.evict(pod);
    // What a pod that went between two looks had been told cannot be learnt any more.
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: expect.stringMatching(/^(evicted|deleted_externally)$/),
      attempt: 1,
    });
    run.expectInterrupted(job);
  },

  'an image that cannot be pulled: told at the deadline, because nobody saw since when': async (
    world,
  ) => {
    const run = await world.start('unpullable', {
      image: 'holdfast.test/does-not-exist:1',
      command: ['run'],
      timeouts: { podPending: '20s' },
    });
    expect(await run.ends()).toMatchObject({ outcome: 'errored', cause: 'image_pull', attempt: 1 });
  },

  'a pod that no node takes': async (world) => {
    const run = await world.start('unschedulable', {
      pod: { spec: { nodeSelector: { 'holdfast.test/nobody': 'has' } } },
      timeouts: { podUnscheduled: '4s' },
    });
    expect(await run.ends()).toMatchObject({
      outcome: 'errored',
      cause: 'unschedulable',
      attempt: 1,
    });
  },
};

const afterwards: Record<string, Scenario<ClusterWorld>> = {
  'a runner whose worker is killed in the middle of its job': async (world) => {
    const run = await world.start('orphaned');
    const job = await run.runJob(countingJob(10));
    world.worker.kill('SIGKILL');
    await world.worker.ended;
    await world.startWorker();
    expect(await run.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
    run.expectUnharmed(job);
    expect({ pods: run.podsEver().length, registered: run.registeredEver() }).toEqual({
      pods: 1,
      registered: 1,
    });
  },

  ...cleanEnd,

  'nobody was told anything: no signal but the cancels, no wait ended by another than its own worker':
    async (world) => {
      const told: string[] = [];
      for (const { handle, key } of world.runs) {
        const { events } = await handle.fetchHistory();
        for (const { workflowExecutionSignaledEventAttributes: signal } of events ?? [])
          if (signal && signal.signalName !== 'cancel') told.push(`${key}: ${readable(signal)}`);
      }
      expect(told).toEqual([]);
      expect(world.simulator.deliveries()).toEqual([]);
    },
};

// Every watcher's completion, podState signal and job event is missing; a wait looks for itself every two seconds.
await describeWithLab('waits without any event', { temporal: true, nodes: 'kubelet' }, (lab) => {
  together(
    async () =>
      await ClusterWorld.open(lab, {
        webhook: false,
        program: MUTED,
        input: { intervals: { resync: '2s' } },
      }),
    lives,
    { afterwards },
  );
});
