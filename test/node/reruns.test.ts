/** Jobs that are lost with their pods run again once, soon after GitHub has ended them; no other job does. */
import { expect } from '@jest/globals';
import { rerunWorkflowId, type RerunResult } from '../../core/contract/index.ts';
import type { SimulatedJob } from '../../tools/simulator/types.ts';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { countingJob, type ClusterRun } from '../support/clusterRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { together, type Scenario } from '../support/together.ts';

const RERUN = { rerun: { onLoss: true } } as const;
const LONG = countingJob(3_600);
/** Maximum time between the end of a job at GitHub and its rerun (ms). */
const SOON_MS = 10_000;

interface Lost {
  readonly run: ClusterRun;
  readonly runnerName: string;
  readonly job: SimulatedJob;
  readonly pod: string;
}

/** A runner whose job runs in its pod. */
async function busy(world: ClusterWorld, name: string, command = LONG): Promise<Lost> {
  const run = await world.start(name, RERUN);
  const { runnerName, pod } = await run.listens();
  return { run, runnerName, pod, job: await run.runJob(command) };
}

/** The job runs again in one more attempt of its run, soon after its end, and GitHub was asked once. */
async function runsAgain(world: ClusterWorld, { run, runnerName, job }: Lost): Promise<void> {
  const { simulator, client } = world;
  const attempts = (): SimulatedJob[] =>
    simulator.jobs().filter(({ run_id }) => run_id === job.run_id);
  const again = await simulator.waitFor(
    () => attempts().find(({ run_attempt }) => run_attempt === 2),
    `the job of ${run.key} to run again`,
    120_000,
  );
  const endedAt = Date.parse(run.job(job).completed_at ?? '');
  expect(Date.parse(again.created_at) - endedAt).toBeLessThan(SOON_MS);
  const handle = client.workflow.getHandle(rerunWorkflowId(runnerName));
  expect((await handle.result()) as RerunResult).toMatchObject({
    outcome: 'requested',
    attempt: 2,
    job: { id: String(job.id), repository: job.repo },
  });
  expect(await run.result()).toMatchObject({
    outcome: 'errored',
    rerunWorkflowId: rerunWorkflowId(runnerName),
  });
  expect(attempts()).toHaveLength(2);
  simulator.cancelJob(again.id);
}

/** The runner has ended, and no rerun was started. */
async function staysAsItIs(world: ClusterWorld, { run, job }: Lost): Promise<void> {
  expect(await run.result()).not.toHaveProperty('rerunWorkflowId');
  const attempts = world.simulator.jobs().filter(({ run_id }) => run_id === job.run_id);
  expect(attempts).toHaveLength(1);
}

const scenarios: Record<string, Scenario<ClusterWorld>> = {
  'four evicted pods: each job runs again': async (world) => {
    const lost = await Promise.all(
      Array.from({ length: 4 }, async (_none, index) => await busy(world, `evicted-${index}`)),
    );
    await Promise.all(lost.map(async ({ run, pod }) => await run.evict(pod)));
    await Promise.all(lost.map(async (each) => await runsAgain(world, each)));
  },

  'a pod deleted by a third party: its job runs again': async (world) => {
    const lost = await busy(world, 'deleted');
    await lost.run.deletePod(lost.pod, 30);
    await runsAgain(world, lost);
  },

  'a pod deleted by force, whose runner may say nothing: its job runs again': async (world) => {
    const lost = await busy(world, 'forced');
    await lost.run.deletePod(lost.pod, 0);
    await runsAgain(world, lost);
  },

  'a job that failed does not run again': async (world) => {
    const failed = await busy(world, 'failed', 'echo begun; exit 1');
    await staysAsItIs(world, failed);
  },

  'a job whose runner someone cancelled does not run again': async (world) => {
    const cancelled = await busy(world, 'cancelled');
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
