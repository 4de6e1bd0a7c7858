/** Jobs of several steps that are interrupted: what must happen after an interruption happens. */
import { Worker } from '@temporalio/worker';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ComputeError } from '../../activities/ports/computeError.ts';
import type { JobResult } from '../../core/contract/index.ts';
import { workflowSourceOptions } from '../../worker/plugin/workflowBundle.ts';
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

const INTERRUPTED = [
  'Received signal. signal=interrupt',
  'error: Process interrupted with signal interrupt, cancelling execution...',
];
const IN_TIME = 'Process gracefully exited before 30m0s grace period';

await describeWithLab('an interrupted job', { temporal: true }, (lab) => {
  let all: MemoryWorld;

  beforeEach(async () => {
    all = await memoryWorld(lab);
  });
  afterEach(async () => await all.world.close());

  const histories: {
    workflowId: string;
    history: Awaited<ReturnType<JobRun['handle']['fetchHistory']>>;
  }[] = [];
  async function ended(run: JobRun): Promise<JobResult> {
    const result = await run.result();
    histories.push({ workflowId: run.id, history: await run.handle.fetchHistory() });
    return result;
  }

  /** Deletions of pods that lived; those of pods that have ended have no reason. */
  const stops = () => all.compute.deletions.filter(({ reason }) => reason !== undefined);

  /** The pod of a step is asked to go, and goes. */
  async function stopped(
    pod: string,
    record: 'timeout' | 'cancelled' | 'superseded' = 'cancelled',
  ): Promise<void> {
    await until(`${pod} to be stopped`, () =>
      all.compute.deletions.some(({ name }) => name === pod),
    );
    commandEnds(all.compute, pod, 143, { reason: record });
    all.compute.vanish(pod);
  }

  test('by its timeout, in test: the step has its reason and grace period; then post in order, which a second cancellation does not interrupt; its log lines', async () => {
    all.compute.onDelete = 'linger';
    playsByItself(all.compute, 'run');
    const run = await JobRun.start(all, { ...THREE, pre: [], timeout: '1s' });
    const unit = await run.pod('test-1');
    await stopped(unit, 'timeout');
    const gather = await run.runs('post-1');
    await run.handle.signal('cancel', 'hurry up');
    await run.handle.signal('cancel', { mode: 'stop', reason: 'hurry up' });
    const { cancel } = await run.status();
    expect(cancel).toEqual({ mode: 'stop', reason: 'it ran for 1s (timeout)' });
    commandEnds(all.compute, gather);
    commandEnds(all.compute, await run.runs('post-2'));
    const result = await ended(run);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
    expect(states(result)).toEqual([
      'unit aborted run_timeout',
      'e2e not_run',
      'gather succeeded',
      'clean succeeded',
    ]);
    expect(stops()).toMatchObject([
      { name: unit, stopReason: 'timeout', reason: 'run_timeout', gracePeriodSeconds: undefined },
    ]);
    expect(lines(result)).toEqual([
      'Running step unit.',
      'Process did not finish before 1s timeout',
      ...INTERRUPTED,
      `cleanup: Deleting pod ${unit}`,
      'Running step gather.',
      'Running step clean.',
      IN_TIME,
    ]);
    expect(run.requests('post-1')[0]?.env).toMatchObject({ JOB_STOP_REASON: 'timeout' });
  });

  test.each(['signal', 'cancellation'])(
    'not by a %s after its steps, during the deletion of its claim',
    async (how) => {
      all.compute.stepStorage = 'claim';
      all.compute.refusals.set('deleteClaims', () => new ComputeError('unavailable', 'no answer'));
      const run = await JobRun.start(all, {});
      await run.ends('test-1');
      await run.reaches('the deletion', ({ waitingFor }) => waitingFor?.includes('claim') === true);
      await (how === 'signal' ? run.handle.signal('cancel', 'late') : run.handle.cancel());
      await run.status();
      all.compute.refusals.delete('deleteClaims');
      const result = await ended(run);
      expect(result).toMatchObject({ outcome: 'succeeded' });
      expect(lines(result)).not.toEqual(expect.arrayContaining(INTERRUPTED));
      expect(all.compute.deletedClaims).toHaveLength(1);
    },
  );

  test('by force: a claim that cannot be deleted is left to the sweep', async () => {
    all.compute.stepStorage = 'claim';
    all.compute.refusals.set('deleteClaims', () => new ComputeError('unavailable', 'no answer'));
    const run = await JobRun.start(all, {});
    await run.runs('test-1');
    await run.handle.signal('cancel', { mode: 'force', reason: 'now' });
    const result = await ended(run);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(lines(result)).toContainEqual(expect.stringContaining('sweep'));
    all.compute.refusals.clear();
  });

  test('by maxAge in the queue: aborted, and post has run', async () => {
    const run = await JobRun.start(all, { timeout: '1s', maxAge: '1s', post: [step('clean')] });
    await run.ends('post-1');
    expect(await ended(run)).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
  });

  test('whose grace period ends during post: the running step stops with its own grace period, the rest does not run', async () => {
    all.compute.onDelete = 'linger';
    const run = await JobRun.start(all, {
      test: [step('unit', { gracePeriod: '1s' })],
      post: THREE.post,
      gracePeriod: '4s',
    });
    await run.ends('test-1');
    const gather = await run.runs('post-1');
    await run.handle.signal('cancel', 'enough');
    await stopped(gather, 'timeout');
    const result = await ended(run);
    expect(result).toMatchObject({
      outcome: 'aborted',
      cause: 'cancelled',
      message: expect.stringContaining('enough'),
    });
    expect(states(result)).toEqual([
      'unit succeeded',
      'gather aborted run_timeout',
      'clean not_run',
    ]);
    expect(stops()).toMatchObject([
      { name: gather, stopReason: 'timeout', gracePeriodSeconds: undefined },
    ]);
    expect(lines(result)).toEqual([
      'Running step unit.',
      'Running step gather.',
      ...INTERRUPTED,
      'Process did not exit before 4s grace period',
      `cleanup: Deleting pod ${gather}`,
    ]);
  });

  test.each([
    [
      'pre',
      'pre-1',
      [],
      [
        'prepare aborted cancelled',
        'unit not_run',
        'e2e not_run',
        'gather succeeded',
        'clean succeeded',
      ],
    ],
    [
      'test',
      'test-1',
      ['pre-1'],
      [
        'prepare succeeded',
        'unit aborted cancelled',
        'e2e not_run',
        'gather succeeded',
        'clean succeeded',
      ],
    ],
  ])('cancelled in %s: the step stops, then post runs', async (_stage, name, before, expected) => {
    const run = await JobRun.start(all, THREE);
    for (const each of before) await run.ends(each);
    const pod = await run.runs(name);
    await run.handle.signal('cancel', 'enough');
    await run.ends('post-1');
    await run.ends('post-2');
    const result = await ended(run);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(states(result)).toEqual(expected);
    expect(lines(result)).toEqual(
      expect.arrayContaining([...INTERRUPTED, `cleanup: Deleting pod ${pod}`, IN_TIME]),
    );
    expect(stops()).toMatchObject([{ name: pod }]);
    expectNothingLeft(all);
  });

  test('cancelled without a worker: nothing of pre and test is created, and post runs', async () => {
    await all.world.suspend();
    const run = await JobRun.start(all, THREE);
    await run.handle.signal('cancel', 'enough');
    await all.world.resume();
    await run.ends('post-1');
    await run.ends('post-2');
    const result = await ended(run);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(states(result)).toEqual([
      'prepare not_run',
      'unit not_run',
      'e2e not_run',
      'gather succeeded',
      'clean succeeded',
    ]);
    expect(lines(result)).toEqual([
      ...INTERRUPTED,
      'Running step gather.',
      'Running step clean.',
      IN_TIME,
    ]);
  });

  test('cancelled while a step is pending: its pod is deleted before it has started', async () => {
    const run = await JobRun.start(all, THREE);
    const pod = await run.pod('pre-1');
    await run.reaches('its pod', ({ steps }) => steps[0]?.pod === pod);
    await run.handle.signal('cancel', 'enough');
    await run.ends('post-1');
    await run.ends('post-2');
    expect(states(await ended(run))[0]).toBe('prepare aborted cancelled');
    expectNothingLeft(all);
  });

  test('cancelled in post: nothing stops', async () => {
    const run = await JobRun.start(all, { post: THREE.post });
    await run.ends('test-1');
    await run.runs('post-1');
    await run.handle.signal('cancel', 'enough');
    await run.reaches('the cancel', ({ cancel }) => cancel !== undefined);
    await run.ends('post-1');
    await run.ends('post-2');
    const result = await ended(run);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(states(result)).toEqual(['unit succeeded', 'gather succeeded', 'clean succeeded']);
    expect(stops()).toEqual([]);
  });

  test('cancelled by force in post: the running step stops immediately, the rest does not run, and no grace period is mentioned', async () => {
    const run = await JobRun.start(all, { post: THREE.post });
    await run.ends('test-1');
    const pod = await run.runs('post-1');
    await run.handle.signal('cancel', { mode: 'force', reason: 'now' });
    const result = await ended(run);
    expect(states(result)).toEqual(['unit succeeded', 'gather aborted cancelled', 'clean not_run']);
    expect(all.compute.deletions.find(({ name }) => name === pod)).toMatchObject({
      gracePeriodSeconds: 1,
    });
    expect(lines(result)).toEqual([
      'Running step unit.',
      'Running step gather.',
      ...INTERRUPTED,
      `cleanup: Deleting pod ${pod}`,
    ]);
  });

  test('drained in pre: the stage completes, then post runs', async () => {
    const run = await JobRun.start(all, { ...THREE, pre: [step('a'), step('b')] });
    await run.runs('pre-1');
    await run.handle.signal('cancel', { mode: 'drain', reason: 'later' });
    for (const name of ['pre-1', 'pre-2', 'post-1', 'post-2']) await run.ends(name);
    const result = await ended(run);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(states(result)).toEqual([
      'a succeeded',
      'b succeeded',
      'unit not_run',
      'e2e not_run',
      'gather succeeded',
      'clean succeeded',
    ]);
    expect(lines(result).filter((line) => !line.startsWith('Running step'))).toEqual([]);
  });

  test('superseded by a newer version: step and post get the reason', async () => {
    const run = await JobRun.start(all, { post: [step('clean')] });
    await run.runs('test-1');
    await run.handle.signal('cancel', { stopReason: 'superseded', reason: 'abc123' });
    await run.ends('post-1');
    expect(await ended(run)).toMatchObject({ outcome: 'aborted', cause: 'superseded' });
    expect(stops()).toMatchObject([{ stopReason: 'superseded' }]);
    expect(run.requests('post-1')[0]?.env).toMatchObject({ JOB_STOP_REASON: 'superseded' });
  });

  test("cancelled by Temporal's cancellation: post runs, and the workflow ends Cancelled", async () => {
    const run = await JobRun.start(all, { post: [step('clean')] });
    await run.runs('test-1');
    await run.handle.cancel();
    await run.ends('post-1');
    await expect(run.result()).rejects.toThrow('Workflow execution cancelled');
    expect(run.made).toEqual(['test-1', 'post-1']);
    expectNothingLeft(all);
  });

  test('cancelled without a worker, after the end of its step: nothing is lost', async () => {
    const run = await JobRun.start(all, THREE);
    const pod = await run.runs('pre-1');
    await all.world.suspend();
    commandEnds(all.compute, pod);
    await run.handle.signal('cancel', 'enough');
    await all.world.resume();
    await run.ends('post-1');
    await run.ends('post-2');
    const result = await ended(run);
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(run.made).toEqual(['pre-1', 'post-1', 'post-2']);
  });

  test('each of these histories replays: another worker decides as the first one did', async () => {
    const faults: string[] = [];
    for await (const { workflowId, error } of Worker.runReplayHistories(
      await workflowSourceOptions({}),
      histories,
    ))
      if (error) faults.push(`${workflowId}: ${String(error)}`);
    expect(faults).toEqual([]);
    expect(histories.length).toBeGreaterThan(0);
  });
});
