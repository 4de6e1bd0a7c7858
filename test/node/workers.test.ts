import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClusterWorld } from '../support/clusterWorld.ts';
import { HELD_JOB, countingJob, type ClusterRun } from '../support/clusterRun.ts';
import { cleanEnd } from '../support/demoRunners.ts';
import { describeWithLab } from '../support/lab.ts';
import type { SimulatedJob } from '../../tools/simulator/types.ts';

interface Busy {
  readonly run: ClusterRun;
  readonly job: SimulatedJob;
}

await describeWithLab('starts and ends of workers', { temporal: true, nodes: 'kubelet' }, (lab) => {
  let world: ClusterWorld;
  beforeAll(async () => {
    world = await ClusterWorld.open(lab);
  }, 120_000);
  afterAll(async () => await world.close(), 120_000);

  async function busy(name: string, ephemeral = true): Promise<Busy> {
    const run = await world.start(name, { ephemeral });
    return { run, job: await run.runJob(HELD_JOB) };
  }

  /** What every runner has: its pod, untouched, and its one registration. Not the phase: a job may begin before the kubelet tells that the pod runs. */
  async function belongings(runs: readonly ClusterRun[]): Promise<object[]> {
    return await Promise.all(
      runs.map(async (run) => ({
        pods: (await run.pods()).map(({ metadata }) => ({
          uid: metadata?.uid,
          deletion: metadata?.deletionTimestamp,
        })),
        registrations: run.registrations().map(({ id, name }) => ({ id, name })),
      })),
    );
  }

  async function expectEachUnharmed(lives: readonly Busy[]): Promise<void> {
    for (const { run, job } of lives) {
      expect(await run.ends()).toMatchObject({
        outcome: 'succeeded',
        attempt: 1,
        replacements: [],
      });
      run.expectUnharmed(job);
      expect(run.podsEver()).toHaveLength(1);
      expect(run.requests('POST', 201)).toHaveLength(1);
    }
  }

  test('SIGKILL during jobs: another worker continues, without a second pod or registration', async () => {
    const [working, ending, drained, idle] = await Promise.all([
      busy('working'),
      busy('ending'),
      busy('drained', false),
      world.start('idle'),
    ]);
    const { pod, runnerName: lost } = await idle.listens();
    await drained.run.drain();
    world.worker.kill('SIGKILL');
    expect(await world.worker.ended).toBe('SIGKILL');

    // While nobody watches: a job ends, and a pod vanishes.
    await ending.run.letGo();
    await ending.run.waitForLine(ending.job, 'finished');
    await idle.deletePod(pod, 0);
    await world.startWorker();
    const { runnerName } = await idle.listens(2);
    const late = idle.queueJob(countingJob(1));
    for (const { run } of [working, drained]) await run.letGo();
    await expectEachUnharmed([ending, working, drained]);
    expect(await idle.ends()).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      replacements: [{ runnerName: lost, cause: 'deleted_externally', replacedBy: runnerName }],
    });
    idle.expectUnharmed(late);
  }, 420_000);

  test('SIGTERM during jobs: status 143, the documented line, and no runner interrupted; a new worker continues', async () => {
    const idle = await world.start('kept-idle');
    await idle.listens();
    const lives = await Promise.all([busy('kept'), busy('kept-draining', false)]);
    await lives[1].run.drain();
    const runs = [...lives.map(({ run }) => run), idle];
    const before = await belongings(runs);
    const { worker } = world;
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(143);
    expect(worker.log.map(({ msg }) => msg)).toContainEqual(
      expect.stringMatching(
        /^received terminated: handing \d+ activities back; no runner is cancelled$/,
      ),
    );
    expect(worker.errors).toEqual([]);

    expect(await belongings(runs)).toEqual(before);
    for (const { run, job } of lives)
      expect(run.job(job)).toMatchObject({ status: 'in_progress', cancelRequested: false });

    await world.startWorker();
    for (const { run } of lives) await run.letGo();
    await expectEachUnharmed(lives);
    expect(idle.podsEver()).toHaveLength(1);
    await idle.drain();
    expect(await idle.ends()).toMatchObject({ outcome: 'succeeded', attempt: 1 });
  }, 420_000);

  for (const [name, check] of Object.entries(cleanEnd)) test(name, async () => await check(world));
});
