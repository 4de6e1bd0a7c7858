/** A set with everything at its documented limit continues as new on a real server with its default limits. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  RUNNER_SET_WORKFLOW,
  jobEventsSignal,
  setWorkflowId,
  type JobEvent,
} from '../../core/contract/index.ts';
import type { CiJob } from '../../core/domain/ciServer.ts';
import { carryWithinLimit } from '../../workflows/runnerSet/carriedSize.ts';
import { MAX_RUNNERS } from '../../core/input/runnerSetSchema.ts';
import { FIRST_JOB_ID, fullSet } from '../support/fullSet.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

/** More than one run takes in. */
const EVENTS = 10_001;
const MIB = 1024 * 1024;

await describeWithLab('a set at its limits', { temporal: true }, (lab) => {
  let stage: MemoryWorld;
  beforeEach(async () => {
    stage = await memoryWorld(lab);
  });
  afterEach(async () => await stage.world.close());

  test('passes all of it to its next run', async () => {
    const [declaration, carried] = carryWithinLimit(fullSet(), []).args;
    const over: JobEvent = {
      action: 'completed',
      jobId: String(FIRST_JOB_ID),
      runAttempt: 1,
      repository: 'acme/app',
      labels: [],
      at: 0,
    };
    await stage.world.suspend();
    const handle = await stage.world.client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(declaration.name),
      taskQueue: stage.world.taskQueue,
      args: [{ ...declaration, paused: true }, carried],
    });
    await handle.signal(jobEventsSignal, {
      events: Array.from({ length: EVENTS }, () => over),
      at: Date.now(),
    });
    await stage.world.resume();
    await until('the next run', async () => {
      const { runId } = await handle.describe();
      return runId !== handle.firstExecutionRunId;
    });
    const { jobs } = await SetRun.of(stage, declaration.name).reaches(
      'its jobs',
      ({ jobs: { queued } }) => queued === MAX_RUNNERS,
    );
    expect(jobs.completedTotal).toBe(carried.jobs.completedTotal);
    const { runId } = await handle.describe();
    // Not the whole history: with what a run takes in and carries on it is more than a client reads.
    const { workflowService, options } = stage.world.client;
    const { history } = await workflowService.getWorkflowExecutionHistory({
      namespace: options.namespace,
      execution: { workflowId: handle.workflowId, runId },
      maximumPageSize: 1,
    });
    const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
    const payloads = started?.input?.payloads ?? [];
    const bytes = payloads.reduce((sum, { data }) => sum + (data?.length ?? 0), 0);
    expect(started?.continuedExecutionRunId).toBe(handle.firstExecutionRunId);
    expect(bytes).toBeGreaterThan(1.25 * MIB);
    expect(bytes).toBeLessThan(1.5 * MIB);
    await handle.terminate();
  });

  test('applies a check of 5,000 running and 5,000 queued jobs with six labels', async () => {
    const labels = ['self-hosted', 'linux', 'x64', 'large', 'gpu', 'ssd'];
    const jobs = Array.from({ length: 2 * MAX_RUNNERS }, (_none, index): CiJob => {
      const times = { queuedAt: Date.now(), startedAt: Date.now() };
      return {
        id: String(FIRST_JOB_ID + index),
        runAttempt: 1,
        repository: 'acme/'.padEnd(140, 'x'),
        labels,
        ...(index < MAX_RUNNERS
          ? { status: 'in_progress', ...times }
          : { status: 'queued', queuedAt: times.queuedAt }),
      };
    });
    // Temporal rejects a signal of 2 MiB, and all of them together are larger even without labels.
    const bytes = JSON.stringify(jobs.map((job) => ({ ...job, labels: [] }))).length;
    expect(bytes).toBeGreaterThan(2 * MIB);
    Object.assign(stage.ci, {
      listQueuedJobs: async () => await Promise.resolve({ jobs, complete: true }),
    });
    const set = await SetRun.start(stage, {
      minIdle: 0,
      max: 0,
      queueCheck: '1s',
      template: { labels } as never,
    });
    const { jobs: seen } = await set.reaches(
      'all jobs',
      ({ jobs: { queued, running } }) => queued + running === 2 * MAX_RUNNERS,
    );
    expect(seen).toMatchObject({ queued: MAX_RUNNERS, running: MAX_RUNNERS });
    expect((await set.status()).queueCheck).toBeUndefined();
    await set.handle.terminate();
  });
});
