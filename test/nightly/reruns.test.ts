/** Many jobs that are lost at once, and many workers that are killed at a rerun: each job runs again once, and soon. */
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { killReruns } from '../support/killedReruns.ts';
import { describeWithLab } from '../support/lab.ts';
import { busyRunner, runsAgain, type BusyRunner } from '../support/lostJobs.ts';
import { killWorkerProcesses } from '../support/workerProcess.ts';

const JOBS = 20;
/** Maximum time from the end of a job at GitHub to its rerun: told by the runner, or by its lapse (ms). */
const HEARD_MS = 10_000;
const UNHEARD_MS = 5_000;
/** Runners that start at once. Each is two processes of this machine. */
const AT_ONCE = 5;
const KILLS = { lanes: 10, rounds: 10 };

await describeWithLab('twenty jobs that are lost', { temporal: true, nodes: 'kubelet' }, (lab) => {
  let world: ClusterWorld;
  afterEach(async () => await world.close());

  async function twenty(name: string): Promise<BusyRunner[]> {
    world = await ClusterWorld.open(lab, { reruns: true });
    const busy: BusyRunner[] = [];
    while (busy.length < JOBS) {
      const more = Array.from({ length: AT_ONCE }, async (_none, index) => {
        return await busyRunner(world, `${name}-${busy.length + index}`);
      });
      busy.push(...(await Promise.all(more)));
    }
    return busy;
  }

  async function expectAllRerun(lost: readonly BusyRunner[], soonMs: number): Promise<void> {
    const afterMs = await Promise.all(lost.map(async (one) => await runsAgain(world, one)));
    process.stderr.write(
      `figures: ms from the end to the rerun: ${afterMs.toSorted((a, b) => a - b).join(' ')}\n`,
    );
    expect(Math.max(...afterMs)).toBeLessThan(soonMs);
    await world.expectNothingLeft();
  }

  test('evicted with SIGTERM: each runs again soon after GitHub has ended it', async () => {
    const lost = await twenty('evicted');
    await Promise.all(lost.map(async ({ run, pod }) => await run.evict(pod)));
    await expectAllRerun(lost, HEARD_MS);
  }, 600_000);

  test('killed without a signal: each runs again soon after its lease has expired', async () => {
    const lost = await twenty('unheard');
    const fault = world.simulator.addFault({ kind: 'drop', endpoint: '* /_runner/*' });
    await Promise.all(lost.map(async ({ run, pod }) => await run.deletePod(pod, 0)));
    for (const { job } of lost) {
      const ended = await world.simulator.waitForJob(job.id, 'completed', 120_000);
      expect(ended).toMatchObject({
        conclusion: 'failure',
        annotation: expect.stringContaining('lost communication'),
      });
    }
    world.simulator.clearFaults(fault.id);
    await expectAllRerun(lost, UNHEARD_MS);
  }, 600_000);
});

await describeWithLab('a worker that is killed during a rerun', { temporal: true }, (lab) => {
  afterAll(killWorkerProcesses);

  test('a hundred times: no job is lost, and none runs twice', async () => {
    const reruns = await killReruns(lab.temporal?.address ?? '', KILLS);
    const wrong = reruns.filter(
      ({ result, attempts }) => result.outcome !== 'requested' || attempts.join() !== '1,2',
    );
    expect(wrong).toEqual([]);
    expect(reruns).toHaveLength(100);
  }, 1_800_000);

  test('twenty times at a force-cancel: no job is lost, and none runs twice', async () => {
    const kills = { lanes: 10, rounds: 2, at: 'forceCancel' } as const;
    const reruns = await killReruns(lab.temporal?.address ?? '', kills);
    const right = reruns.filter(
      ({ result, attempts }) => result.forceCancelled === true && attempts.join() === '1,2',
    );
    expect([reruns.length, right.length]).toEqual([20, 20]);
  }, 900_000);
});
