/** Jobs of several steps that nobody interrupts: their steps' order, ends and lives. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { JOB_WORKFLOW } from '../../core/contract/index.ts';
import { MAX_STEPS } from '../../core/input/jobChecks.ts';
import {
  JobRun,
  THREE,
  commandEnds,
  lines,
  playsByItself,
  states,
  step,
} from '../support/jobRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

await describeWithLab('a job of several steps', { temporal: true }, (lab) => {
  let all: MemoryWorld;

  beforeEach(async () => {
    all = await memoryWorld(lab);
  });
  afterEach(async () => await all.world.close());

  test('without disturbance: each step once, in order, as a runner of its own', async () => {
    const run = await JobRun.start(all, THREE);
    for (const name of ['pre-1', 'test-1', 'test-2', 'post-1', 'post-2']) await run.ends(name);
    const result = await run.result();
    expect(result).toMatchObject({ outcome: 'succeeded', name: 'web' });
    const { currentDetails } = await run.handle.query<{ currentDetails?: string }>(
      '__temporal_workflow_metadata',
    );
    expect(currentDetails?.split('\n')).toEqual(
      expect.arrayContaining(['- Outcome: succeeded', `- ${result.message}`]),
    );
    expect(states(result)).toEqual([
      'prepare succeeded',
      'unit succeeded',
      'e2e succeeded',
      'gather succeeded',
      'clean succeeded',
    ]);
    expect(run.made).toEqual(['pre-1', 'test-1', 'test-2', 'post-1', 'post-2']);
    expect(lines(result)).toEqual(
      ['prepare', 'unit', 'e2e', 'gather', 'clean'].map((name) => `Running step ${name}.`),
    );
    const { runId } = await run.handle.describe();
    for (const { env } of all.compute.created)
      expect(env).toEqual({ JOB_NAME: 'web', BUILD_ID: runId });
    const left = ['pre-prepare', 'test-unit', 'test-e2e', 'post-gather'].map(
      (name) => `shared/jobs/web/${runId}/${name}/1.json`,
    );
    expect(all.compute.created.map(({ storage }) => storage?.sharedDirSources)).toEqual(
      [0, 1, 2, 3, 4].map((before) => left.slice(0, before).toReversed()),
    );
    expect(result.steps.map(({ artifactPath }) => artifactPath)).toEqual(
      ['pre-prepare', 'test-unit', 'test-e2e', 'post-gather', 'post-clean'].map(
        (name) => `artifacts/jobs/web/${runId}/${name}/1/`,
      ),
    );
    expectNothingLeft(all);
  });

  test('with a claim: all steps have it, and it is deleted after the last pod', async () => {
    const { compute } = all;
    compute.stepStorage = 'claim';
    const run = await JobRun.start(all, { test: [step('unit')], post: [step('clean')] });
    await run.ends('test-1');
    await run.pod('post-1');
    expect(compute.deletedClaims).toEqual([]);
    await run.ends('post-1');
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    const { runId: firstRunId } = await run.handle.describe();
    expect(compute.created.map(({ storage }) => storage?.job)).toEqual(
      Array.from({ length: 2 }, () =>
        expect.objectContaining({ workflowId: run.id, firstRunId, attempt: 0 }),
      ),
    );
    expect(compute.deletedClaims).toEqual(['job']);
    expectNothingLeft(all);
  });

  test('a claim that cannot be deleted does not change the outcome, and is left to the sweep', async () => {
    const { compute } = all;
    compute.stepStorage = 'claim';
    compute.refusals.set('deleteClaims', () =>
      ApplicationFailure.nonRetryable('no such namespace'),
    );
    const run = await JobRun.start(all, {});
    await run.ends('test-1');
    const { outcome, log } = await run.result();
    expect(outcome).toBe('succeeded');
    expect(log.at(-1)?.message).toContain('no such namespace');
  });

  test("started by a user's Temporal Schedule: the ID contains the time, and steps are named after it", async () => {
    const { world } = all;
    const scheduleId = `nightly-${randomUUID().slice(0, 8)}`;
    const args = [{ name: 'web', test: [step('unit')], post: [step('clean')] }];
    const schedule = await world.client.schedule.create({
      scheduleId,
      spec: { calendars: [{ year: 2099 }] },
      action: {
        type: 'startWorkflow',
        workflowType: JOB_WORKFLOW,
        taskQueue: world.taskQueue,
        workflowId: `job-${scheduleId}`,
        args,
      },
    });
    try {
      await schedule.trigger();
      let id: string | undefined;
      await until(
        'the job',
        async () =>
          (id = (await schedule.describe()).info.recentActions[0]?.action.workflow.workflowId) !==
          undefined,
      );
      expect(id).toMatch(new RegExp(`^job-${scheduleId}-\\d{4}-.*Z$`));
      const run = JobRun.of(all, id ?? '');
      await run.ends('test-1');
      await run.ends('post-1');
      expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
      expectNothingLeft(all);
    } finally {
      await schedule.delete();
    }
  });

  test('a step starts while the pod of the previous one is being deleted; the job ends when all are deleted', async () => {
    all.compute.slowToGo = true;
    const goes: string[] = [];
    const vanish = all.compute.vanish.bind(all.compute);
    all.compute.vanish = (pod) => void goes.push(pod);
    const run = await JobRun.start(all, { test: [step('unit')], post: [step('clean')] });
    await run.ends('test-1');
    await run.ends('post-1');
    const { steps } = await run.reaches(
      'its last pod to be waited for',
      ({ waitingFor }) => waitingFor?.startsWith('the pod of test unit') === true,
    );
    expect(steps.map(({ outcome }) => outcome)).toEqual(['succeeded', 'succeeded']);
    await until('both to be asked to go', () => goes.length === 2);
    for (const pod of goes) vanish(pod);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expect(run.made).toEqual(['test-1', 'post-1']);
    expectNothingLeft(all);
  });

  test('by force, if only undeletable pods are left: they are killed', async () => {
    all.compute.slowToGo = true;
    all.compute.vanish = () => undefined;
    const run = await JobRun.start(all, {});
    await run.ends('test-1');
    await run.reaches(
      'its pod to be waited for',
      ({ waitingFor }) => waitingFor?.startsWith('the pod of') === true,
    );
    await run.handle.signal('cancel', { mode: 'force', reason: 'now' });
    await until('it to be killed', () =>
      all.compute.deletions.some(({ gracePeriodSeconds }) => gracePeriodSeconds === 1),
    );
  });

  test.each<[what: string, cancel: (run: JobRun) => Promise<unknown>]>([
    ['stop', async ({ handle }) => await handle.signal('cancel', { mode: 'stop', reason: 'late' })],
    ['force', async ({ handle }) => await handle.signal('cancel', { mode: 'force', reason: '' })],
    ['Temporal cancellation', async ({ handle }) => await handle.cancel()],
  ])('its result does not change after its last step: %s', async (_how, cancel) => {
    all.compute.slowToGo = true;
    const going = Promise.withResolvers<string>();
    const vanish = all.compute.vanish.bind(all.compute);
    all.compute.vanish = going.resolve;
    const run = await JobRun.start(all, {});
    await run.ends('test-1');
    await run.reaches(
      'its pod to be waited for',
      ({ waitingFor }) => waitingFor?.startsWith('the pod of') === true,
    );
    await cancel(run);
    vanish(await going.promise);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
  });

  test.each<[what: string, end: [code: number, reason?: 'timeout'], outcome: object]>([
    ['fails', [3], { outcome: 'failed' }],
    ['runs into its own timeout', [127, 'timeout'], { outcome: 'aborted', cause: 'run_timeout' }],
  ])(
    'a step of test that %s: no more steps of test, all of post, within no grace period',
    async (_what, [code, reason], outcome) => {
      const run = await JobRun.start(all, THREE);
      await run.ends('pre-1');
      await run.ends('test-1', code, reason === undefined ? {} : { reason });
      await run.ends('post-1', 1);
      await run.ends('post-2');
      const result = await run.result();
      expect(result).toMatchObject(outcome);
      expect(result.steps.map(({ state }) => state)).toEqual([
        'ended',
        'ended',
        'not_run',
        'ended',
        'ended',
      ]);
      expect(lines(result).filter((line) => !line.startsWith('Running step'))).toEqual([]);
      expect(all.compute.created.flatMap(({ env }) => env?.['JOB_STOP_REASON'] ?? [])).toEqual([]);
    },
  );

  test('its timeout starts with its first pod, not in the queue', async () => {
    const held = Promise.withResolvers<void>();
    const create = all.compute.createPod.bind(all.compute);
    all.compute.createPod = async (request) => {
      await held.promise;
      return await create(request);
    };
    const run = await JobRun.start(all, { timeout: '1h' });
    const before = await run.reaches(
      'a step that is queued',
      ({ waitingFor }) => waitingFor === 'test unit to end',
    );
    expect(Date.parse(before.waitingUntil ?? '') - Date.now()).toBeGreaterThan(6 * 24 * 3_600_000);
    held.resolve();
    await run.runs('test-1');
    const { waitingUntil } = await run.reaches(
      'its timeout',
      (status) => status.waitingUntil !== before.waitingUntil,
    );
    expect(Date.parse(waitingUntil ?? '') - Date.now()).toBeLessThan(3_600_000);
    await run.ends('test-1');
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
  });

  test('bestEffort is ignored; skipOnSuccess is skipped if all earlier steps succeeded', async () => {
    const run = await JobRun.start(all, {
      post: [
        step('gather', { skipOnSuccess: true }),
        step('clean', { bestEffort: true }),
        step('tell', { skipOnSuccess: true }),
      ],
    });
    await run.ends('test-1');
    await run.ends('post-2', 1);
    await run.ends('post-3');
    const result = await run.result();
    expect(result).toMatchObject({ outcome: 'succeeded' });
    expect(states(result)).toEqual([
      'unit succeeded',
      'gather skipped',
      'clean failed',
      'tell succeeded',
    ]);
  });

  describe('a step that is evicted', () => {
    const EVICTED = { terminating: true, disruptionReason: 'EvictionByEvictionAPI' };

    test('before its command started: another pod replaces it', async () => {
      const run = await JobRun.start(all, {});
      const first = await run.pod('test-1');
      all.compute.change(first, { ended: true, ...EVICTED });
      await run.runs('test-1', 2);
      commandEnds(all.compute, await run.pod('test-1', 2));
      expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    });

    test('afterwards: infrastructure, not failure; post runs', async () => {
      const run = await JobRun.start(all, { post: [step('clean')] });
      await run.ends('test-1', 143, { reason: 'cancelled' }, EVICTED);
      await run.ends('post-1');
      expect(await run.result()).toMatchObject({ outcome: 'errored', cause: 'evicted' });
    });
  });

  test('its worker ends during test and between two steps of post: each step runs once, in order', async () => {
    const run = await JobRun.start(all, THREE);
    await run.ends('pre-1');
    const unit = await run.runs('test-1');
    await all.world.suspend();
    commandEnds(all.compute, unit, 1);
    await all.world.resume();
    const gather = await run.runs('post-1');
    await all.world.suspend();
    commandEnds(all.compute, gather);
    await all.world.resume();
    await run.ends('post-2');
    expect(await run.result()).toMatchObject({ outcome: 'failed' });
    expect(run.made).toEqual(['pre-1', 'test-1', 'post-1', 'post-2']);
  });

  test('terminated: the workflow of its step continues, and can clean up', async () => {
    const run = await JobRun.start(all, {});
    await run.runs('test-1');
    await run.handle.terminate('by hand');
    const life = all.world.client.workflow.getHandle(`${run.id}-test-1`);
    expect((await life.describe()).status.name).toBe('RUNNING');
    await life.signal('cancel', 'its job is gone');
    expect(await life.result()).toMatchObject({ outcome: 'aborted' });
    expectNothingLeft(all);
  });

  test('a step that is terminated by hand is infrastructure; post runs', async () => {
    const run = await JobRun.start(all, { post: [step('clean')] });
    await run.runs('test-1');
    await all.world.client.workflow.getHandle(`${run.id}-test-1`).terminate('by hand');
    await run.ends('post-1');
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'errored',
      steps: [{ message: expect.stringContaining('terminated') }, {}],
    });
  });

  test('a step whose ID another workflow has', async () => {
    const { world } = all;
    const id = `job-taken-${Date.now()}`;
    await world.client.workflow.start('runner', {
      workflowId: `${id}-test-1`,
      taskQueue: world.taskQueue,
      args: [{ ciServer: 'none', command: ['x'] }],
    });
    const run = await JobRun.start(all, { post: [step('clean')] }, id);
    await run.ends('post-1');
    expect(await run.result()).toMatchObject({
      outcome: 'errored',
      steps: [{ message: expect.stringContaining(`${id}-test-1 is already running`) }, {}],
    });
  });

  test('invalid input: it fails with every invalid field, and nothing starts', async () => {
    all.compute.unsound.push('the image is not allowed');
    const bad = await JobRun.start(all, { test: [{ name: 'x' }], timeout: 'soon' });
    await expect(bad.result()).rejects.toMatchObject({
      cause: {
        type: 'InvalidInput',
        message: expect.stringContaining('timeout is not a duration'),
      },
    });
    const unsound = await JobRun.start(all, {});
    await expect(unsound.result()).rejects.toMatchObject({
      cause: {
        type: 'InvalidInput',
        message: 'Invalid input: test unit: the image is not allowed',
      },
    });
    expect(all.compute.created).toEqual([]);
  });

  test('its history stays short: with a hundred steps under 2,000 events, extrapolated from twenty', async () => {
    playsByItself(all.compute, 'end');
    const many = (count: number, stage: string) =>
      Array.from({ length: count }, (_none, index) => step(`${stage}-${index}`));
    const run = await JobRun.start(all, { test: many(10, 'test'), post: many(10, 'post') });
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    const { events = [] } = await run.handle.fetchHistory();
    expect((events?.length ?? 0) * (MAX_STEPS / 20)).toBeLessThan(2_000);
    // One for maxAge and one for its timeout, however many steps there are.
    expect(
      events?.filter(
        ({ timerStartedEventAttributes: timer }) => timer !== null && timer !== undefined,
      ),
    ).toHaveLength(2);
  });
});
