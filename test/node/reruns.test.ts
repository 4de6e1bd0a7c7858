/** Jobs that are lost with their pods run again once, soon after GitHub has ended them; no other job does. */
import { expect } from '@jest/globals';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { busyRunner, runsAgain, type BusyRunner } from '../support/lostJobs.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';

/** Maximum time between the end of a job at GitHub and its rerun (ms). */
const SOON_MS = 50_000;

async function runsAgainSoon(world: ClusterWorld, lost: BusyRunner): Promise<void> {
  expect(await runsAgain(world, lost)).toBeLessThan(SOON_MS);
}

/** The runner has ended, and no rerun was started. */
async function staysAsItIs(world: ClusterWorld, { run, job }: BusyRunner): Promise<void> {
  expect(await run.result()).not.toHaveProperty('rerunWorkflowId');
  const attempts = world.simulator.jobs().filter(({ run_id }) => run_id === job.run_id);
  expect(attempts).toHaveLength(1);
}

const scenarios: Record<string, Scenario<ClusterWorld>> = {
  'four evicted pods: each job runs again': async (world) => {
    const lost = await Promise.all(
      Array.from(
        { length: 4 },
        async (_none, index) => await busyRunner(world, `evicted-${index}`),
      ),
    );
    await Promise.all(lost.map(async ({ run, pod }) => await run.evict(pod)));
    for (const each of lost) await runsAgainSoon(world, each);
  },

  'a pod deleted by a third party: its job runs again': async (world) => {
    const lost = await busyRunner(world, 'deleted');
    await lost.run.deletePod(lost.pod, 30);
    await runsAgainSoon(world, lost);
  },

  'a pod deleted by force, whose runner may say nothing: its job runs again': async (world) => {
    const lost = await busyRunner(world, 'forced');
    await lost.run.deletePod(lost.pod, 0);
    await runsAgainSoon(world, lost);
  },

  'a job that failed does not run again': async (world) => {
    const failed = await busyRunner(world, 'failed', 'echo begun; exit 1');
    await staysAsItIs(world, failed);
  },

  'a job whose runner someone cancelled does not run again': async (world) => {
    const cancelled = await busyRunner(world, 'cancelled');
    await cancelled.run.handle.signal('cancel', 'enough');
    await staysAsItIs(world, cancelled);
  },
};

const needs = { temporal: true, nodes: 'kubelet' } as const;
await describeWithLab('jobs that are lost with their pods', needs, (lab) => {
  together(async () => await ClusterWorld.open(lab, { reruns: true }), scenarios, {
    afterwards: {
      'nothing is left: no pod, Secret, registration or running workflow': async (world) =>
        await world.expectNothingLeft(),
    },
  });
});
