/** Runners from their workflow to their end: a real Temporal, a real Gitea with its official runner as a process, real workflow files. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { drainUpdate, type RunnerResult } from '../../core/contract/index.ts';
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import type { GiteaJobState } from '../support/gitea.ts';
import { GiteaWorld } from '../support/giteaWorld.ts';
import { KillingProxy, type KillPoint } from '../support/killingProxy.ts';
import { describeWithLab } from '../support/lab.ts';
import { until, untilSeen } from '../support/until.ts';

const NEEDS = { gitea: true, temporal: true, kubernetes: false };
const JOBS = 8;
const RUNNER = /\/orgs\/acme\/actions\/runners\/\d+$/;

await describeWithLab('Runners of Gitea', NEEDS, (lab) => {
  let world: GiteaWorld;
  beforeEach(async () => void (world = await GiteaWorld.open(lab)));
  afterEach(async () => await world.close());

  test('a worker killed while the runner is busy: another one continues, and the job is not interrupted', async () => {
    const first = world.startWorker();
    await first.started();
    const runner = await world.startRunner();
    await world.reaches(runner, 'Idle');
    const { job, finish } = await world.heldJob();
    await world.reaches(runner, 'Busy');
    first.kill('SIGKILL');
    await first.ended;
    await world.startWorker().started();
    await finish();
    expect(await runner.result()).toMatchObject({ outcome: 'succeeded' });
    expect(await world.job(job.id)).toMatchObject({ conclusion: 'success' });
    expect(await world.jobLog(job.id)).toMatch(/^\S+ finished$/m);
    expect(await world.gitea.runners()).toEqual([]);
  });

  test('drained while idle, as a process that does not report it: it ends with its registration', async () => {
    await world.startWorker().started();
    const runner = await world.startRunner();
    await world.reaches(runner, 'Idle');
    await runner.executeUpdate(drainUpdate.name, { args: [{ reason: 'test' }] });
    expect(await runner.result()).toMatchObject({ outcome: 'succeeded' });
    expect(await world.gitea.runners()).toEqual([]);
  });

  test('static: it runs one job after another; drained while busy, it ends with that job', async () => {
    await world.startWorker().started();
    const runner = await world.startRunner({ ephemeral: false });
    await world.reaches(runner, 'Idle');
    const first = await world.queueJob();
    expect(await world.waitForJob(first.id, 'completed')).toMatchObject({ conclusion: 'success' });
    const { job, finish } = await world.heldJob();
    await world.reaches(runner, 'Busy');
    await runner.executeUpdate(drainUpdate.name, { args: [{ reason: 'test' }] });
    await until('Gitea to have it disabled', async () =>
      (await world.gitea.runners()).every(({ disabled }) => disabled),
    );
    const later = await world.queueJob();
    await finish();
    expect(await runner.result()).toMatchObject({ outcome: 'succeeded' });
    expect(await world.job(job.id)).toMatchObject({ conclusion: 'success' });
    expect(await world.jobLog(job.id)).toMatch(/^\S+ finished$/m);
    expect(await world.job(later.id)).toMatchObject({ status: 'queued' });
    expect(await world.gitea.runners()).toEqual([]);
  });

  test.each<[string, KillPoint]>([
    ['registered it', { method: 'POST', path: /RunnerService\/Register$/, when: 'after' }],
    ['disabled it', { method: 'PATCH', path: RUNNER, when: 'after' }],
    ['unregistered it', { method: 'DELETE', path: RUNNER, when: 'after' }],
  ])('a worker killed after Gitea has %s: one runner remains, and ends', async (_what, point) => {
    const start = (url: string): ReturnType<GiteaWorld['startWorker']> => world.startWorker(url);
    const proxy = await KillingProxy.start(world.gitea.access.url, start);
    await proxy.worker.started();
    const killed = proxy.kill(point);
    const runner = await world.startRunner();
    if (point.method === 'POST') await killed;
    await world.reaches(runner, 'Idle');
    expect(await world.gitea.runners()).toHaveLength(1);
    await runner.signal('cancel', { mode: 'stop', reason: 'test' });
    await killed;
    expect((await runner.result()) as RunnerResult).toMatchObject({ outcome: 'aborted' });
    expect(await world.gitea.runners()).toEqual([]);
    await proxy.close();
  });

  test('a set by webhook whose receiver is down for half of the jobs: each job runs once, and nothing is left', async () => {
    const worker = world.startWorker();
    await worker.started();
    const set = await world.startSet({ max: 4 });
    const statusOf = async (): ReturnType<typeof querySetStatus> =>
      await querySetStatus(world.client, set.workflowId);
    const jobs: GiteaJobState[] = [];
    const more = async (): Promise<void> => {
      for (let n = 0; n < JOBS / 2; n++) jobs.push(await world.queueJob());
    };
    await more();
    for (const { id } of jobs) await world.waitForJob(id, 'completed');
    // Gitea repeats no delivery: that of an end is lost if the receiver goes before it.
    await until(
      'the set to have their ends',
      async () => (await statusOf()).jobs.completedTotal === jobs.length,
    );
    worker.kill('SIGKILL');
    await worker.ended;
    await more();
    await world.startWorker().started();
    for (const { id } of jobs)
      expect(await world.waitForJob(id, 'completed')).toMatchObject({ conclusion: 'success' });
    await untilSeen(
      'the set to be at rest',
      statusOf,
      ({ runners, jobs: { queued, running, completedTotal } }) =>
        runners.length === 0 && queued + running === 0 && completedTotal === JOBS,
      180_000,
    );
    expect(await world.gitea.runners()).toEqual([]);
    await set.terminate();
  }, 300_000);
});
