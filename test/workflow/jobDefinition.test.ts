/** Declared jobs on a real Temporal server: from a change to its runs, one turn after the other. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  deleteDefinitionSignal,
  groupedJobId,
  jobDeclarationQuery,
  pauseDefinitionSignal,
  resumeDefinitionSignal,
  type JobDefinitionStatus,
} from '../../core/contract/index.ts';
import { DefinitionRun } from '../support/definitionRun.ts';
import { JobRun, playsByItself, step } from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab('a declared job', { temporal: true }, (lab) => {
  let all: MemoryWorld;
  let job: DefinitionRun;

  beforeEach(async () => {
    all = await memoryWorld(lab);
    job = new DefinitionRun(all);
  });
  afterEach(async () => await all.world.close());

  const run = (changeSet: number | string, generation = 1): JobRun =>
    JobRun.of(all, groupedJobId(job.group(changeSet), generation));
  const versions = (turns: JobDefinitionStatus['running']): string[] =>
    turns.map(({ version }) => version);
  const ended = ({ ended: over }: JobDefinitionStatus): string[] =>
    over.map(({ version, outcome = '?' }) => `${version} ${outcome}`);

  test('a push and a pull request are run, and their steps know what for', async () => {
    playsByItself(all.compute, 'end');
    await job.apply();
    await job.push('main', 'aaa1');
    await job.pull(7, 'bbb2');
    const status = await job.reaches('both are over', (now) => now.ended.length === 2);
    expect(ended(status).toSorted()).toEqual(['aaa1 succeeded', 'bbb2 succeeded']);
    expect(status).toMatchObject({ generation: 1, running: [], waiting: [], leftOut: [] });
    const [push] = run('main').requests('test-1');
    expect(push?.env).toMatchObject({
      JOB_NAME: job.name,
      JOB_EVENT: 'push',
      JOB_COMMIT: 'aaa1',
      JOB_REF: 'refs/heads/main',
    });
    const [pull] = run(7).requests('test-1');
    expect(pull?.env).toMatchObject({
      JOB_EVENT: 'pull_request',
      JOB_COMMIT: 'bbb2',
      JOB_REF: 'refs/pull/7/merge',
      JOB_BASE: 'main',
      JOB_PULL_REQUEST: '7',
    });
  });

  test('applied again it is another from the next run on; one that is invalid is refused, says why, and the one before goes on', async () => {
    playsByItself(all.compute, 'end');
    await job.apply();
    await job.apply({ test: [step('other')] });
    await job.reaches('the second', ({ generation }) => generation === 2);
    await job.apply({ test: [], on: {} });
    const refused = await job.reaches('the refusal', (now) => now.refused !== undefined);
    expect(refused).toMatchObject({
      generation: 2,
      checking: false,
      refused: {
        why: expect.stringMatching(
          /on must have at least one.*test must have at least one step|test must.*on must/s,
        ),
      },
    });
    expect(await job.handle.query(jobDeclarationQuery)).toEqual(
      job.input({ test: [step('other')] }),
    );
    await job.push('main', 'aaa1');
    await job.reaches('it to be over', (now) => now.ended.length === 1);
    expect((await run('main').result()).steps.map(({ name }) => name)).toEqual(['other']);
    await job.apply();
    expect(await job.reaches('the third', ({ generation }) => generation === 3)).not.toHaveProperty(
      'refused',
    );
  });

  test('one whose only declaration is refused does nothing; one that is sent to another id is refused', async () => {
    await job.apply({ name: 'another' });
    const status = await job.reaches('the refusal', (now) => now.refused !== undefined);
    expect(status).toMatchObject({
      generation: 0,
      name: job.name,
      refused: { why: expect.stringContaining('job-definition:acme/web:another') },
    });
    await job.push('main', 'aaa1');
    await job.apply();
    expect(await job.reaches('a good one', ({ generation }) => generation === 1)).toMatchObject({
      running: [],
      waiting: [],
    });
  });

  test("an outsider's pull request starts nothing; where the job is for those it has neither Secret nor claim, and a trusted one has", async () => {
    playsByItself(all.compute, 'end');
    const volumes = [
      { name: 'cloud', mountPath: '/cloud', secret: { secretName: 'cloud' } },
      { name: 'cache', mountPath: '/cache', persistentVolumeClaim: { claimName: 'cache' } },
      { name: 'scratch', mountPath: '/scratch', emptyDir: {} },
    ];
    await job.apply({ test: [step('unit', { volumes })] });
    await job.pull(6, 'evil0', { trusted: false });
    expect(
      (await job.reaches('the refusal', (now) => now.leftOut.length === 1)).leftOut[0],
    ).toMatchObject({
      what: 'pull request of evil0 (refs/pull/6/merge)',
      why: expect.stringContaining("an outsider's"),
    });
    await job.apply({ untrusted: true, test: [step('unit', { volumes })] });
    await job.pull(7, 'evil1', { trusted: false });
    await job.pull(8, 'good1');
    await job.reaches('both are over', (now) => now.ended.length === 2);
    const [outsiders, trusted] = [run(7).requests('test-1')[0], run(8).requests('test-1')[0]];
    expect(outsiders).toMatchObject({
      untrusted: true,
      template: {
        spec: {
          volumes: [{ name: 'scratch', emptyDir: {} }],
          containers: [{ volumeMounts: [{ name: 'scratch' }] }],
        },
      },
    });
    expect(trusted?.template?.spec?.volumes).toHaveLength(3);
    expect(trusted).not.toHaveProperty('untrusted');
    expect(run(6).made).toEqual([]);
    // SHARED_DIR of a run begins with nothing of another's: what is kept of it lies in a folder of its own.
    expect(outsiders?.storage?.path).not.toBe(trusted?.storage?.path);
    expect([outsiders?.storage?.sharedFrom, trusted?.storage?.sharedFrom]).toEqual([[], []]);
  });

  test('which files a pull request changes is asked, where it matters', async () => {
    playsByItself(all.compute, 'end');
    all.ci.changedFiles.set(7, ['docs/a.md']).set(8, ['docs/a.md', 'src/a.ts']);
    await job.apply({ on: { pull_request: { paths: ['src/**'] } } });
    for (const number of [7, 8]) await job.pull(number, `c${number}`);
    await job.pull(9, 'c9'); // nobody knows
    const status = await job.reaches(
      'two are over',
      (now) => now.ended.length === 2 && now.leftOut.length === 1,
    );
    expect(ended(status).toSorted()).toEqual(['c8 succeeded', 'c9 succeeded']);
    expect(status.leftOut[0]).toMatchObject({
      what: expect.stringContaining('c7'),
      why: expect.stringContaining('paths'),
    });
  });

  test('maxConcurrency: others wait in their order, the newest of each alone, also over the end of a worker; turns are free again without a look', async () => {
    await job.apply({ maxConcurrency: 1, intervals: { relook: '1h' } });
    await job.pull(1, 'a1');
    await run(1).runs('test-1');
    await job.pull(2, 'b1');
    await job.pull(3, 'c1');
    await job.pull(2, 'b2');
    const waiting = await job.reaches(
      'two wait',
      (now) => versions(now.waiting).join() === 'b2,c1',
    );
    expect(versions(waiting.running)).toEqual(['a1']);
    await all.world.suspend();
    await all.world.resume();
    expect(versions((await job.status()).waiting)).toEqual(['b2', 'c1']);
    await run(1).ends('test-1');
    await run(2).ends('test-1');
    await run(3).ends('test-1');
    const over = await job.reaches('all are over', (now) => now.ended.length === 3);
    expect(ended(over)).toEqual(['c1 succeeded', 'b2 succeeded', 'a1 succeeded']);
    expect(all.compute.created.map(({ identity }) => identity.workflowId)).toEqual(
      [1, 2, 3].map((number) => `${groupedJobId(job.group(number), 1)}-test-1`),
    );
  });

  test('a newer version of the change set under way takes its turn: the older run ends first', async () => {
    await job.apply({ maxConcurrency: 1 });
    await job.pull(1, 'a1');
    const older = await run(1).runs('test-1');
    await job.pull(2, 'b1');
    await job.pull(1, 'a2');
    await until('the older run to be stopped', () =>
      all.compute.deletions.some(({ name }) => name === older),
    );
    await run(1, 2).ends('test-1');
    await run(2).ends('test-1');
    expect(ended(await job.reaches('both are over', (now) => now.ended.length === 2))).toEqual([
      'b1 succeeded',
      'a2 succeeded',
    ]);
  });

  test('a turn is free again when its runs were terminated, but not while one goes on without its group', async () => {
    await job.apply({ maxConcurrency: 1 });
    await job.pull(1, 'a1');
    await run(1).runs('test-1');
    await job.pull(2, 'b1');
    await job.reaches('one waits', (now) => now.waiting.length === 1);
    await all.world.client.workflow.getHandle(job.group(1)).terminate('by hand');
    const { events } = await job.handle.fetchHistory();
    const looks = async (): Promise<number> =>
      ((await job.handle.fetchHistory()).events ?? []).filter(
        (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'findOver',
      ).length;
    const before = await looks();
    await until(
      'two looks more',
      async () => (await looks()) >= before + 2,
      () => `${events?.length}`,
    );
    expect(versions((await job.status()).waiting)).toEqual(['b1']);
    await run(1).handle.terminate('by hand, too');
    await run(2).ends('test-1');
    expect(ended(await job.reaches('both are over', (now) => now.ended.length === 2))).toEqual([
      'b1 succeeded',
      'a1 ?',
    ]);
  });

  test('paused it begins nothing, and what comes waits; deleted it ends when its runs have, and an apply revokes that', async () => {
    await job.apply();
    await job.push('main', 'aaa1');
    await run('main').runs('test-1');
    await job.handle.signal(pauseDefinitionSignal, { reason: 'the cloud is down' });
    await job.push('other', 'bbb2');
    expect(await job.reaches('one waits', (now) => now.waiting.length === 1)).toMatchObject({
      paused: 'the cloud is down',
      running: [{ version: 'aaa1' }],
    });
    await job.handle.signal(resumeDefinitionSignal);
    await run('other').runs('test-1');
    expect(await job.status()).not.toHaveProperty('paused');
    await job.handle.signal(deleteDefinitionSignal, { reason: 'moved' });
    await job.reaches('the end to be asked for', ({ ending }) => ending === 'moved');
    await job.apply();
    await job.reaches(
      'the end to be revoked',
      ({ ending, generation }) => ending === undefined && generation === 2,
    );
    await job.handle.signal(deleteDefinitionSignal);
    await job.push('third', 'ccc3');
    for (const branch of ['main', 'other']) await run(branch).ends('test-1');
    await job.handle.result();
    expect(ended(await job.status())).toHaveLength(2);
    expect(run('third').made).toEqual([]);
  });

  test('a schedule: each time is a run, unless the one before is not over', async () => {
    await job.apply({ on: { schedule: [{ cron: '0 3 * * *' }] } });
    const { nextScheduledAt = '' } = await job.reaches(
      'it to be planned',
      (now) => now.nextScheduledAt !== undefined,
    );
    expect(nextScheduledAt).toMatch(/T03:00:00\.000Z$/);
    // Its next times are now.
    const due = [0, 1, 2].map((each) => Date.now() + each * 500);
    for (const nextAtMs of [...due.slice(1), Date.parse(nextScheduledAt)])
      all.world.pretences.push({ activity: 'nextScheduled', answer: () => ({ nextAtMs }) });
    all.world.pretences.push({
      activity: 'admitDefinition',
      answer: ({ input }: { input: unknown }) => ({
        spec: {
          name: job.name,
          repository: job.repository,
          credential: 'default',
          schedules: [{ cron: '0 3 * * *', timeZone: 'UTC' }],
          untrusted: false,
          relookMs: 60_000,
        },
        declaration: input,
        nextAtMs: due[0],
      }),
    } as never);
    await job.apply({ on: { schedule: [{ cron: '0 3 * * *' }] } });
    const nightly = JobRun.of(all, groupedJobId(`job-group:${job.name}:acme/web:schedule`, 1));
    await nightly.runs('test-1');
    const status = await job.reaches(
      'the others to be left out',
      (now) => now.leftOut.length === 2,
    );
    expect(status.leftOut.map(({ why }) => why)).toEqual([
      'the run before it is not over',
      'the run before it is not over',
    ]);
    await nightly.ends('test-1');
    const over = await job.reaches('the run to be over', (now) => now.ended.length === 1);
    expect(over).toMatchObject({
      nextScheduledAt,
      ended: [
        {
          version: new Date(due[0] ?? 0).toISOString().replaceAll(/[-:]|\.\d+/g, ''),
          outcome: 'succeeded',
        },
      ],
    });
    expect(nightly.requests('test-1')[0]?.env).toMatchObject({ JOB_EVENT: 'schedule' });
  });
});
