/** Jobs that are lost with their runner run again, once, and no other job does. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { WorkflowNotFoundError, type WorkflowHandle } from '@temporalio/client';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import {
  RERUN_WORKFLOW,
  SEARCH_ATTRIBUTES,
  jobEventSignal,
  rerunWorkflowId,
  type RerunInput,
  type RerunResult,
  type RunnerInput,
  type RunnerResult,
} from '../../core/contract/index.ts';
import type { CiJobList } from '../../core/domain/ciServer.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { runCli } from '../support/cli.ts';
import { FakeReruns } from '../support/fakeReruns.ts';
import type { RunnerRun } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld, type MemoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

const EVICTED: Partial<PodView> = {
  terminating: true,
  disruptionReason: 'EvictionByEvictionAPI',
};

await describeWithLab('a job that is lost with its runner', { temporal: true }, (lab) => {
  let all: MemoryWorld;
  let reruns: FakeReruns;

  beforeEach(async () => {
    all = await memoryWorld(lab);
    reruns = new FakeReruns();
    all.ci.reruns = reruns;
  });
  afterEach(async () => await all.world.close());

  /** Starts a runner that runs this job, as a job event reports. */
  async function busyRunner(
    jobId: string,
    input: Partial<RunnerInput> = {},
    event = true,
  ): Promise<{ run: RunnerRun; pod: string; runnerName: string }> {
    const { compute, ci, world } = all;
    const run = await world.start({ rerun: { onLoss: true }, ...input });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', ({ phase }) => phase === 'Idle');
    ci.setBusy(runnerName, true);
    reruns.begin(jobId, runnerName);
    compute.startJob(pod);
    if (event)
      await run.handle.signal(jobEventSignal, {
        action: 'in_progress',
        jobId,
        repository: 'acme/web',
        runnerName,
      });
    await run.reaches('Busy', ({ phase }) => phase === 'Busy');
    return { run, pod, runnerName };
  }

  /** Deletes the pod during its job. The CI server reports the end of the job later. */
  function lose({ pod, runnerName }: { pod: string; runnerName: string }, now = Date.now()): void {
    const { compute, ci } = all;
    compute.change(pod, { ...EVICTED, terminationRequestedAt: new Date(now).toISOString() });
    compute.end(pod, 143);
    compute.vanish(pod);
    ci.forget(runnerName);
  }

  const rerunOf = (runnerName: string): WorkflowHandle =>
    all.world.client.workflow.getHandle(rerunWorkflowId(runnerName));
  /** Returns the number of waits that it has started. */
  const checksOf = async (rerun: WorkflowHandle): Promise<number> =>
    ((await rerun.fetchHistory()).events ?? []).filter(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'awaitRerun',
    ).length;
  async function resultOf(runnerName: string): Promise<RerunResult> {
    await until('its rerun', async () => {
      try {
        await rerunOf(runnerName).describe();
        return true;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false;
        throw error;
      }
    });
    return (await rerunOf(runnerName).result()) as RerunResult;
  }

  test('is rerun after its conclusion at GitHub, and the runner names the workflow', async () => {
    const lost = await busyRunner('41');
    lose(lost);
    const result = (await lost.run.result()) as RunnerResult;
    expect(result).toMatchObject({
      outcome: 'errored',
      cause: 'evicted',
      rerunWorkflowId: rerunWorkflowId(lost.runnerName),
    });
    expect(reruns.requested).toEqual([]);
    reruns.end('41', 'failure');
    expect(await resultOf(lost.runnerName)).toMatchObject({
      outcome: 'requested',
      attempt: 2,
      job: { id: '41', repository: 'acme/web' },
    });
    expect(reruns.requested).toEqual(['41']);
    const { typedSearchAttributes } = await rerunOf(lost.runnerName).describe();
    expect(typedSearchAttributes.get(SEARCH_ATTRIBUTES.outcome)).toBe('requested');
    const shown = await runCli(['runner', 'get', lost.run.handle.workflowId, '--json'], {
      TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
    });
    expect(JSON.parse(shown.stdout)).toMatchObject({
      rerun: { workflowId: rerunWorkflowId(lost.runnerName), outcome: 'requested', attempt: 2 },
    });
    expectNothingLeft(all);
  });

  test('is found by the name of its runner if no event has named it', async () => {
    const lost = await busyRunner('42', {}, false);
    const listQueuedJobs = async (): Promise<CiJobList> => ({
      complete: true,
      jobs: [
        {
          id: '42',
          runAttempt: 1,
          repository: 'acme/web',
          labels: [],
          status: 'in_progress',
          queuedAt: 1,
          runnerName: lost.runnerName,
        },
      ],
    });
    Object.assign(all.ci, { listQueuedJobs });
    lose(lost);
    reruns.end('42', 'failure');
    expect(await resultOf(lost.runnerName)).toMatchObject({ outcome: 'requested' });
  });

  test('is rerun for a runner that is replaced, whose record names the workflow', async () => {
    const lost = await busyRunner('43', { onEviction: 'replace' });
    lose(lost);
    reruns.end('43', 'failure');
    expect(await resultOf(lost.runnerName)).toMatchObject({ outcome: 'requested' });
    const { replacements } = await lost.run.reaches(
      'the replacement',
      ({ replacements: { length } }) => length > 0,
    );
    expect(replacements).toMatchObject([
      { runnerName: lost.runnerName, rerunWorkflowId: rerunWorkflowId(lost.runnerName) },
    ]);
  });

  test('is requested again from a server that limits requests', async () => {
    const lost = await busyRunner('44');
    reruns.end('44', 'cancelled');
    reruns.evidence.set('44', 'shutdown');
    reruns.failures.push(
      new CiServerError('rate_limited', 'secondary limit', { status: 403, retryAfterMs: 50 }),
      new CiServerError('unavailable', 'no answer'),
    );
    lose(lost);
    expect(await resultOf(lost.runnerName)).toMatchObject({ outcome: 'requested', attempt: 2 });
    expect(reruns.requested).toEqual(['44']);
  });

  test('is rerun although it ended earlier by the clocks', async () => {
    const lost = await busyRunner('40');
    reruns.end('40', 'failure');
    await lost.run.handle.signal(jobEventSignal, {
      action: 'completed',
      conclusion: 'failure',
      jobId: '40',
      repository: 'acme/web',
      runnerName: lost.runnerName,
    });
    // The API server's clock is ahead of those of GitHub and Temporal.
    lose(lost, Date.now() + 30_000);
    expect(await resultOf(lost.runnerName)).toMatchObject({ outcome: 'requested', attempt: 2 });
    expect(reruns.requested).toEqual(['40']);
  });

  test('waits for the other jobs of its run', async () => {
    const lost = await busyRunner('46');
    reruns.end('46', 'failure', { runEnded: false });
    lose(lost);
    await lost.run.result();
    await until('the wait', async () => {
      const { raw } = await rerunOf(lost.runnerName).describe();
      return (
        raw.pendingActivities?.[0]?.lastFailure?.applicationFailureInfo?.type === 'JobNotEndedYet'
      );
    });
    expect(reruns.requested).toEqual([]);
    await rerunOf(lost.runnerName).terminate('seen');
  });

  test('is checked at once when an event reports its end; events without an end cause few checks', async () => {
    const lost = await busyRunner('48');
    reruns.end('48', 'failure', { runEnded: false });
    lose(lost);
    await lost.run.result();
    const rerun = rerunOf(lost.runnerName);
    await until('the first check', async () => (await checksOf(rerun)) === 1);
    await rerun.signal(jobEventSignal, { action: 'in_progress', jobId: '48' });
    await rerun.signal(jobEventSignal, { action: 'completed', jobId: '48' });
    // A signal during a check does not cause another one.
    await until('the second check to be over', async () => {
      const { raw } = await rerun.describe();
      return (await checksOf(rerun)) === 2 && Boolean(raw.pendingActivities?.[0]?.lastFailure);
    });
    reruns.end('48', 'failure');
    // Without an event the next check would be a minute later.
    await rerun.signal(jobEventSignal, { action: 'completed', jobId: '48' });
    expect(await rerun.result()).toMatchObject({ outcome: 'requested', attempt: 2 });
    expect(await checksOf(rerun)).toBe(3);
    expect(reruns.requested).toEqual(['48']);
  });

  test('is checked for at most three events, however many arrive', async () => {
    const lost = await busyRunner('49');
    reruns.end('49', 'failure', { runEnded: false });
    lose(lost);
    await lost.run.result();
    const rerun = rerunOf(lost.runnerName);
    for (let event = 0; event < 10; event++) {
      const before = await checksOf(rerun);
      await rerun.signal(jobEventSignal, { action: 'completed', jobId: '49' });
      if (event < 3) await until('another check', async () => (await checksOf(rerun)) > before);
    }
    await rerun.cancel();
    expect(await rerun.result()).toMatchObject({ outcome: 'failed', reason: 'interrupted' });
    expect(await checksOf(rerun)).toBe(4);
  });

  test('is rerun with another ID if its own is in use', async () => {
    const lost = await busyRunner('47');
    const { client, taskQueue } = all.world;
    const args = [{}];
    const workflowId = rerunWorkflowId(lost.runnerName);
    await client.workflow.start('nobodysType', { workflowId, taskQueue, args });
    reruns.end('47', 'failure');
    lose(lost);
    const { rerunWorkflowId: id = '' } = (await lost.run.result()) as RunnerResult;
    expect(id).not.toBe(workflowId);
    const result = await client.workflow.getHandle(id).result();
    expect(result).toMatchObject({ outcome: 'requested' });
  });

  test('is not rerun twice when the response of GitHub is lost', async () => {
    const lost = await busyRunner('45');
    reruns.lostResponses.push(new CiServerError('unavailable', 'no answer'));
    reruns.end('45', 'failure');
    lose(lost);
    expect(await resultOf(lost.runnerName)).toMatchObject({ outcome: 'requested', attempt: 2 });
    expect(reruns.requested).toEqual(['45']);
  });

  test('is not claimed if a user reran it after a request that GitHub rejected', async () => {
    const lost = await busyRunner('39');
    reruns.failures.push(
      new CiServerError('rate_limited', 'secondary limit', { status: 403, retryAfterMs: 50 }),
    );
    reruns.end('39', 'failure');
    reruns.beforeRequest = () =>
      reruns.end('39', 'failure', { latestAttempt: 2, rerunAttempt: 2, runEnded: false });
    lose(lost);
    expect(await resultOf(lost.runnerName)).toMatchObject({
      outcome: 'skipped',
      reason: 'already_rerun',
    });
    expect(reruns.requested).toEqual([]);
  });

  test.each<[string, (id: string) => void, object]>([
    ['succeeded all the same', (id) => reruns.end(id, 'success'), { reason: 'succeeded' }],
    ['was cancelled by someone', (id) => reruns.end(id, 'cancelled'), { reason: 'cancelled' }],
    [
      'failed by itself meanwhile',
      (id) => {
        reruns.end(id, 'failure');
        reruns.evidence.set(id, 'none');
      },
      { reason: 'failed_itself' },
    ],
    [
      'had failed by itself before',
      (id) => {
        reruns.end(id, 'failure', { completedAt: 1 });
        reruns.evidence.set(id, 'none');
      },
      { reason: 'failed_itself' },
    ],
    [
      'was rerun by someone',
      (id) => reruns.end(id, 'failure', { latestAttempt: 2, rerunAttempt: 2 }),
      { reason: 'already_rerun' },
    ],
    ['is unknown to the server', (id) => void reruns.jobs.delete(id), { reason: 'job_unknown' }],
    [
      'GitHub does not rerun',
      (id) => {
        reruns.end(id, 'failure');
        reruns.failures.push(new CiServerError('rejected', 'too old', { status: 403 }));
      },
      { outcome: 'failed', reason: 'rejected' },
    ],
  ])('that %s does not run again', async (_what, prepare, expected) => {
    const id = randomUUID().slice(0, 8);
    const lost = await busyRunner(id);
    prepare(id);
    lose(lost);
    expect(await resultOf(lost.runnerName)).toMatchObject({ outcome: 'skipped', ...expected });
    expect(reruns.requested).toEqual([]);
  });

  describe('whose run may be force-cancelled', () => {
    const EARLY: Partial<RunnerInput> = { rerun: { onLoss: true, forceCancelAfter: '1s' } };

    /** The CI server still shows the job in progress, on a runner that is offline. */
    function loseUnheard(lost: { pod: string; runnerName: string }, jobId: string): void {
      lose(lost);
      all.ci.connect(lost.runnerName, false);
      all.ci.setBusy(lost.runnerName, true);
      reruns.evidence.set(jobId, 'none');
    }
    /** Waits for the check at the time at which the run could have been force-cancelled. */
    async function isChecked(runnerName: string): Promise<void> {
      await until('the third check', async () => {
        const { raw } = await rerunOf(runnerName).describe();
        return (raw.pendingActivities?.[0]?.attempt ?? 0) > 3;
      });
    }

    test('runs again before GitHub has concluded it', async () => {
      const lost = await busyRunner('71', EARLY);
      loseUnheard(lost, '71');
      expect(await resultOf(lost.runnerName)).toMatchObject({
        outcome: 'requested',
        attempt: 2,
        forceCancelled: true,
      });
      expect([reruns.forceCancelled, reruns.requested]).toEqual([['71'], ['71']]);
    });

    test('runs again once where the response to the force-cancel is lost', async () => {
      const lost = await busyRunner('72', EARLY);
      reruns.lostResponses.push(new CiServerError('unavailable', 'no answer'));
      loseUnheard(lost, '72');
      expect(await resultOf(lost.runnerName)).toMatchObject({
        outcome: 'requested',
        forceCancelled: true,
      });
      expect([reruns.forceCancelled, reruns.requested]).toEqual([['72'], ['72']]);
    });

    test('stays as it is where someone cancels it at the same moment', async () => {
      const lost = await busyRunner('73', EARLY);
      reruns.beforeRequest = () => void reruns.evidence.set('73', 'cancelled');
      loseUnheard(lost, '73');
      expect(await resultOf(lost.runnerName)).toMatchObject({
        outcome: 'skipped',
        reason: 'cancelled',
      });
      expect([reruns.forceCancelled, reruns.requested]).toEqual([['73'], []]);
    });

    test('waits for GitHub while another job of its run is active', async () => {
      const lost = await busyRunner('74', EARLY);
      reruns.shared.add('74');
      loseUnheard(lost, '74');
      await isChecked(lost.runnerName);
      reruns.evidence.set('74', 'lost');
      reruns.end('74', 'failure');
      const result = await resultOf(lost.runnerName);
      expect(result).toMatchObject({ outcome: 'requested', attempt: 2 });
      expect(result).not.toHaveProperty('forceCancelled');
      expect(reruns.forceCancelled).toEqual([]);
    });

    test('is left to the person who has cancelled it', async () => {
      const lost = await busyRunner('75', EARLY);
      loseUnheard(lost, '75');
      reruns.evidence.set('75', 'cancelled');
      await isChecked(lost.runnerName);
      reruns.end('75', 'cancelled');
      expect(await resultOf(lost.runnerName)).toMatchObject({ reason: 'cancelled' });
      expect([reruns.forceCancelled, reruns.requested]).toEqual([[], []]);
    });
  });

  test('counts towards a daily maximum', async () => {
    const organization = `o-${randomUUID().slice(0, 8)}`;
    const rerun = { onLoss: true, perDay: 1 };
    for (const [id, expected] of [
      ['51', { outcome: 'requested' }],
      ['52', { outcome: 'skipped', reason: 'per_day' }],
    ] as const) {
      const lost = await busyRunner(id, { organization, rerun, name: id }, false);
      await lost.run.handle.signal(jobEventSignal, {
        action: 'in_progress',
        jobId: id,
        repository: `${organization}/web`,
      });
      await lost.run.reaches('the job', ({ job }) => job !== undefined);
      reruns.end(id, 'failure');
      lose(lost);
      expect(await resultOf(lost.runnerName)).toMatchObject(expected);
      await until('visibility', async () => {
        const { count } = await all.world.client.workflow.count(
          `WorkflowType = 'rerun' AND RunnerScope = '${organization}' AND RunnerOutcome = '${expected.outcome}'`,
        );
        return count === 1;
      });
    }
    expect(reruns.requested).toEqual(['51']);
  });

  test('counts towards a daily maximum also if it was lost later and ended earlier', async () => {
    const organization = `o-${randomUUID().slice(0, 8)}`;
    const input = { organization, rerun: { onLoss: true, perDay: 1 } };
    const losses = new Map<string, string>();
    for (const id of ['53', '54']) {
      const lost = await busyRunner(id, { ...input, name: id }, false);
      await lost.run.handle.signal(jobEventSignal, {
        action: 'in_progress',
        jobId: id,
        repository: `${organization}/web`,
      });
      await lost.run.reaches('the job', ({ job }) => job !== undefined);
      lose(lost);
      await lost.run.result();
      losses.set(id, lost.runnerName);
    }
    reruns.end('54', 'failure');
    expect(await resultOf(losses.get('54') ?? '')).toMatchObject({ outcome: 'requested' });
    await until('visibility', async () => {
      const { count } = await all.world.client.workflow.count(
        `WorkflowType = 'rerun' AND RunnerScope = '${organization}' AND ExecutionStatus = 'Completed'`,
      );
      return count === 1;
    });
    reruns.end('53', 'failure');
    expect(await resultOf(losses.get('53') ?? '')).toMatchObject({
      outcome: 'skipped',
      reason: 'per_day',
    });
    expect(reruns.requested).toEqual(['54']);
  });

  test.each<[string, Partial<RunnerInput>, (lost: { run: RunnerRun; pod: string }) => unknown]>([
    ['nobody asked for it', { rerun: { onLoss: false } }, () => undefined],
    ['it ran out of memory', {}, ({ pod }) => all.compute.end(pod, 137, { oomKilled: true })],
    ['it failed by itself', {}, ({ pod }) => all.compute.end(pod, 1)],
    [
      'someone stopped its runner',
      {},
      async ({ run }) => await run.handle.signal('cancel', { mode: 'force', reason: 'by hand' }),
    ],
  ])('is not rerun if %s', async (_what, input, end) => {
    const lost = await busyRunner(randomUUID().slice(0, 8), input);
    all.ci.setBusy(lost.runnerName, false);
    await end(lost);
    if (input.rerun !== undefined) lose(lost);
    const result = (await lost.run.result()) as RunnerResult;
    expect(result).not.toHaveProperty('rerunWorkflowId');
    await expect(rerunOf(lost.runnerName).describe()).rejects.toMatchObject({
      name: 'WorkflowNotFoundError',
    });
  });

  test('is rerun only for the workflow of the lost runner', async () => {
    const lost = await busyRunner('61');
    reruns.end('61', 'failure');
    const input: RerunInput = {
      organization: 'acme',
      runnerName: lost.runnerName,
      cause: 'evicted',
      job: { id: '61', repository: 'acme/web' },
      perRun: 1,
      perDay: 20,
    };
    const { client, taskQueue } = all.world;
    for (const args of [[input], [{ ...input, job: undefined }]]) {
      const started = client.workflow.execute(RERUN_WORKFLOW, {
        workflowId: `rerun-${randomUUID()}`,
        taskQueue,
        args: JSON.parse(JSON.stringify(args)) as unknown[],
      });
      await expect(started).rejects.toMatchObject({ cause: { type: 'ForeignObject' } });
    }
    expect(reruns.requested).toEqual([]);
  });

  test('a runner that requests reruns is rejected if its credential does not allow them', async () => {
    delete all.ci.reruns;
    const run = await all.world.start({ rerun: { onLoss: true } });
    await expect(run.result()).rejects.toMatchObject({
      cause: { type: 'InvalidInput', details: [{ code: 'denied', field: 'credential:' }] },
    });
  });
});
