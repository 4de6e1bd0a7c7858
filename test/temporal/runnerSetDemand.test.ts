import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';
import { type RunnerSetInput, type SetRunnerStatus } from '../../core/contract/index.ts';
import type { CiJob, CiJobList, Scope } from '../../core/domain/ciServer.ts';

/** A CI server with a list of its jobs. */
class ListingCiServer extends FakeCiServer {
  jobs: CiJob[] = [];
  looks = 0;
  failure: Error | undefined;
  /** What a look waits for. */
  held: Promise<void> | undefined;

  async listQueuedJobs(_scope: Scope, _labels?: readonly string[]): Promise<CiJobList> {
    this.looks++;
    await this.held;
    if (this.failure) throw this.failure;
    return { jobs: this.jobs, complete: true };
  }

  list(id: number, more: Partial<CiJob> = {}): void {
    this.jobs.push({
      id: String(id),
      runAttempt: 1,
      repository: 'acme/app',
      labels: ['linux'],
      status: 'queued',
      queuedAt: Date.now(),
      ...more,
    });
  }
}

await describeWithLab('a set that follows demand', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: ListingCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab, new ListingCiServer()));
  });
  afterEach(async () => await world.close());

  const start = async (input: Partial<RunnerSetInput>): Promise<SetRun> =>
    await SetRun.start({ world, compute, ci }, { minIdle: 0, max: 5, ...input });

  async function endsClean(set: SetRun): Promise<void> {
    await set.end();
    expectNothingLeft({ compute, ci });
  }

  /** An ephemeral runner takes the only queued job and ends, and no event tells of it. @returns it, and when it ended */
  async function silentLife(set: SetRun): Promise<SetRunnerStatus & { endedAt: number }> {
    await set.queueJob();
    const { runners } = await set.comesTo({ idle: 1 });
    const [runner] = runners;
    if (runner === undefined) throw new Error('no runner');
    set.startJob(runner);
    await until(
      'it to be busy',
      async () =>
        (
          await world.client.workflow
            .getHandle(runner.workflowId)
            .query<{ phase: string }>('status')
        ).phase === 'Busy',
    );
    const endedAt = Date.now();
    set.endJob(runner);
    await set.reaches(
      'the runner to be gone',
      (status) => !status.runners.some(({ workflowId }) => workflowId === runner.workflowId),
    );
    return { ...runner, endedAt };
  }

  test('the lifecycle of a job by events: one runner, which is not replaced', async () => {
    const set = await start({ queueCheck: '0s' });
    const jobId = await set.queueJob();
    const { runners } = await set.comesTo({ idle: 1 });
    const [runner] = runners;
    if (runner === undefined) throw new Error('no runner');
    set.startJob(runner);
    await set.tell(set.event('in_progress', jobId, runner.runnerName));
    await set.settles({ busy: 1 });
    set.endJob(runner);
    // The runner is gone before its completed event is there.
    const gone = await set.settles({});
    expect(gone).toMatchObject({
      desired: 0,
      jobs: { queued: 0, running: 0, startedTotal: 1, completedTotal: 1 },
    });
    await set.tell(set.event('completed', jobId, runner.runnerName), set.event('queued', jobId));
    expect(compute.created).toHaveLength(1);
    expect((await set.status()).jobs).toEqual({
      queued: 0,
      running: 0,
      startedTotal: 1,
      completedTotal: 1,
    });
    await endsClean(set);
  });

  test('a runner that dies before it takes the job is replaced immediately', async () => {
    const set = await start({ queueCheck: '0s', recreationGuard: '1h' });
    await set.queueJob();
    const { runners } = await set.comesTo({ idle: 1 });
    compute.end(set.podOf(runners[0]?.workflowId ?? ''), 1);
    await until('another runner', () => compute.created.length === 2);
    await endsClean(set);
  });

  test('the recreation guard prevents a replacement until the event arrives', async () => {
    const set = await start({ queueCheck: '0s', recreationGuard: '1h' });
    const runner = await silentLife(set);
    const guarded = await set.status();
    expect(guarded).toMatchObject({ desired: 1, runners: [], jobs: { queued: 1, running: 0 } });
    expect(guarded.waitingFor).toContain('recreation guard: 1 places stay empty until 20');
    await set.tell(set.event('completed', 1, runner.runnerName));
    expect(await set.reaches('nothing wanted', ({ desired }) => desired === 0)).not.toHaveProperty(
      'waitingFor',
    );
    expect(compute.created).toHaveLength(1);
    await endsClean(set);
  });

  test('without the event it ends after its time', async () => {
    const set = await start({ queueCheck: '0s', recreationGuard: '2s' });
    const { endedAt } = await silentLife(set);
    await until('another runner', () => compute.created.length === 2);
    expect(Date.now() - endedAt).toBeGreaterThanOrEqual(2_000);
    await endsClean(set);
  });

  test('a check that finds the job still queued ends it immediately', async () => {
    const set = await start({ queueCheck: '1h', recreationGuard: '1h' });
    await until('the first look', () => ci.looks === 1);
    ci.list(1);
    await silentLife(set);
    await until('another runner', () => compute.created.length === 2);
    await endsClean(set);
  });

  test('a check compensates for lost events: it finds waiting jobs, and releases ended ones', async () => {
    ci.list(70);
    ci.list(71, { labels: ['windows'] });
    const set = await start({ queueCheck: '1s' });
    await set.reaches('the queued job', ({ desired, jobs }) => desired === 1 && jobs.queued === 1);
    const { runners } = await set.comesTo({ idle: 1 });
    const [runner] = runners;
    if (runner === undefined) throw new Error('no runner');
    set.startJob(runner);
    ci.jobs = [];
    ci.list(70, {
      status: 'in_progress',
      startedAt: Date.now(),
      runnerName: runner.runnerName ?? '',
    });
    // Its runner alone may have said that it is busy; a look has to have seen the job before there is none any more.
    await set.reaches('the job that runs', ({ jobs }) => jobs.running === 1 && jobs.queued === 0);
    await set.settles({ busy: 1 });
    ci.failure = new Error('no answer');
    const { looks } = ci;
    await until('looks that fail', () => ci.looks > looks + 1);
    ci.failure = undefined;
    ci.jobs = [];
    set.endJob(runner);
    await set.reaches(
      'the job over',
      ({ desired, runners, jobs }) =>
        desired + runners.length + jobs.queued + jobs.running === 0 && jobs.completedTotal === 1,
    );
    expect(compute.created).toHaveLength(1);
    await endsClean(set);
  });

  test('a running check does not delay continue-as-new, and the next run gets its result', async () => {
    const answer = Promise.withResolvers<void>();
    ci.held = answer.promise;
    ci.list(70);
    const set = await start({ queueCheck: '1h', paused: true });
    await until('the look', () => ci.looks === 1);
    const { runId } = await set.handle.describe();
    // More than one run takes in.
    for (let batch = 0; batch < 55; batch++)
      await set.tell(
        ...Array.from({ length: 200 }, (_none, index) =>
          set.event('completed', 1_000 + batch * 200 + index),
        ),
      );
    await until('another run', async () => (await set.handle.describe()).runId !== runId);
    answer.resolve();
    await set.reaches('the job', ({ jobs }) => jobs.queued === 1);
    expect(ci.looks).toBe(1);
    await endsClean(set);
  });
});
