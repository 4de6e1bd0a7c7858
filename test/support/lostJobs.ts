/** Runners that lose their job in a cluster's world, and the checks of the job. */
import { expect } from '@jest/globals';
import { rerunWorkflowId, type RerunResult } from '../../core/contract/index.ts';
import type { SimulatedJob } from '../../tools/simulator/types.ts';
import { countingJob, type ClusterRun } from './clusterRun.ts';
import type { ClusterWorld } from './clusterWorld.ts';

const RERUN = { rerun: { onLoss: true } } as const;
const LONG = countingJob(3_600);

/** A runner, and the job that it runs. */
export interface BusyRunner {
  readonly run: ClusterRun;
  readonly runnerName: string;
  readonly job: SimulatedJob;
  readonly pod: string;
}

/** Returns a runner whose job runs in its pod. */
export async function busyRunner(
  world: ClusterWorld,
  name: string,
  command = LONG,
): Promise<BusyRunner> {
  const run = await world.start(name, RERUN);
  const { runnerName, pod } = await run.listens();
  return { run, runnerName, pod, job: await run.runJob(command) };
}

/**
 * Checks that the job runs again in one more attempt of its run, after one request to GitHub.
 * @returns the time from its end at GitHub to the rerun (ms)
 */
export async function runsAgain(
  world: ClusterWorld,
  { run, runnerName, job }: BusyRunner,
): Promise<number> {
  const { simulator, client } = world;
  const attempts = (): SimulatedJob[] =>
    simulator.jobs().filter(({ run_id }) => run_id === job.run_id);
  const again = await simulator.waitFor(
    () => attempts().find(({ run_attempt }) => run_attempt === 2),
    `the job of ${run.key} to run again`,
    120_000,
  );
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
  return Date.parse(again.created_at) - Date.parse(run.job(job).completed_at ?? '');
}
