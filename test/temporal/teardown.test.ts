import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import { ComputeError } from '../../activities/ports/computeError.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import type { RunnerInput } from '../../core/contract/index.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld, RunnerRun } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

/** Teardown of a runner while the cluster or the CI server rejects requests. */
await describeWithLab('teardown', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;
  let run: RunnerRun;
  let pod: string;
  let runnerName: string;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  async function busyRunner(input: Partial<RunnerInput> = {}): Promise<void> {
    run = await world.start(input);
    pod = await run.pod();
    compute.start(pod);
    ({ runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle'));
    ci.connect(runnerName);
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
  }

  function finishJob(): void {
    ci.forget(runnerName);
    compute.endJob(pod);
    compute.end(pod, 0);
  }

  /**
   * Returns errors as of an admission webhook. The first one has the retry delay of production, the
   * others a short one.
   */
  function denied(): () => ComputeError {
    const delays = [undefined];
    return () =>
      new ComputeError(
        'invalid',
        'admission webhook "keep.example.com" denied the request: not on Sundays',
        delays.length > 0 ? { retryAfterMs: delays.pop() } : { retryAfterMs: 100 },
      );
  }
  const reachesDenial = async () =>
    await run.reaches(
      'a wait with the reason of the denial',
      ({ waitingFor }) => waitingFor?.includes('not on Sundays') === true,
    );

  test.each<[what: string, method: keyof Compute]>([
    ['pod', 'deletePod'],
    ['Secret', 'deleteRegistrationSecret'],
  ])(
    'a denied deletion of the %s is a wait with the reason, and the runner ends when it is allowed',
    async (_what, method) => {
      await busyRunner();
      compute.refusals.set(method, denied());
      finishJob();
      await reachesDenial();
      expect(await run.status()).toMatchObject({ phase: 'TearingDown' });
      compute.refusals.clear();
      expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
      expectNothingLeft({ compute, ci });
    },
  );

  test.each<[what: string, method: keyof Compute, why: () => Error]>([
    ['a denied deletion of the pod', 'deletePod', denied()],
    ['a denied deletion of the Secret', 'deleteRegistrationSecret', denied()],
    [
      'an unavailable API server',
      'deletePod',
      () =>
        new ComputeError('unavailable', 'the API server is unavailable: not on Sundays', {
          retryAfterMs: 100,
        }),
    ],
  ])(
    '%s after a job that is known to be completed is a wait too, although a local activity does the teardown',
    async (_what, method, why) => {
      await busyRunner();
      compute.refusals.set(method, why);
      ci.forget(runnerName);
      compute.end(pod, 0, { exit: { code: 0, oomKilled: false, record: { job: 'completed' } } });
      await reachesDenial();
      compute.refusals.clear();
      expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
      expectNothingLeft({ compute, ci });
    },
  );

  test('a denied stop: the job continues, its end is observed, and the runner ends when the deletion is allowed', async () => {
    await busyRunner();
    compute.refusals.set('deletePod', denied());
    await run.handle.signal('cancel', 'enough');
    await reachesDenial();
    expect(compute.jobs.has(pod)).toBe(true);
    finishJob();
    await run.reaches('TearingDown', ({ phase }) => phase === 'TearingDown');
    await reachesDenial();
    compute.refusals.clear();
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expectNothingLeft({ compute, ci });
  });

  test('a denied stop of a runner whose container has not started keeps its Secret, so that it can start', async () => {
    compute.refusals.set('deletePod', denied());
    run = await world.start();
    pod = await run.pod();
    await run.handle.signal('cancel', { mode: 'force', reason: 'enough' });
    await reachesDenial();
    expect(compute.secrets.size).toBe(1);
    compute.start(pod);
    compute.refusals.clear();
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expectNothingLeft({ compute, ci });
  });

  test('a denied stop is upgraded to a force', async () => {
    await busyRunner();
    compute.refusals.set('deletePod', denied());
    await run.handle.signal('cancel', 'enough');
    await reachesDenial();
    await run.handle.signal('cancel', { mode: 'force', reason: 'now' });
    await run.reaches('mode force', ({ cancel }) => cancel?.mode === 'force');
    compute.refusals.clear();
    await until('the deletion with the shortest grace period', () => compute.deletions.length > 0);
    expect(compute.deletions[0]).toMatchObject({ gracePeriodSeconds: 1 });
    ci.setBusy(runnerName, false);
    expect(await run.result()).toMatchObject({ outcome: 'aborted' });
  });

  test('a wait for the end that a user has failed is scheduled again, and the end is observed', async () => {
    await busyRunner();
    const wait = { workflowId: run.handle.workflowId, activityId: `ended/${pod}` };
    await until(
      'the wait',
      async () =>
        (await run.handle.describe()).raw.pendingActivities?.some(
          ({ activityId }) => activityId === wait.activityId,
        ) === true,
    );
    await world.client.activity.fail(wait, ApplicationFailure.nonRetryable('by hand'));
    finishJob();
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  test('a wait for the end that was completed with another pod is scheduled again, and the end is observed', async () => {
    await busyRunner();
    const wait = { workflowId: run.handle.workflowId, activityId: `ended/${pod}` };
    await until(
      'the wait',
      async () =>
        (await run.handle.describe()).raw.pendingActivities?.some(
          ({ activityId }) => activityId === wait.activityId,
        ) === true,
    );
    await world.client.activity.complete(wait, {
      ...compute.pods.get(pod),
      uid: 'another',
      ended: true,
      deleted: true,
    });
    finishJob();
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  test('a claim is not mounted by another runner while the node of the previous one may still write to it', async () => {
    const volumeClaims = [{ name: 'cache', mountPath: '/cache', claim: 'slot-0' }];
    await busyRunner({ volumeClaims });
    ci.forget(runnerName);
    compute.vanish(pod);
    expect(await run.result()).toMatchObject({ outcome: 'errored', cause: 'deleted_externally' });
    compute.nodeStates.push(...Array<'unreachable'>(1_000).fill('unreachable'));
    const next = await world.start({ volumeClaims });
    await next.reaches(
      'a wait for the node',
      ({ waitingFor }) => waitingFor?.includes('node-1') === true,
    );
    expect(compute.created).toHaveLength(1);
    compute.nodeStates.splice(0, Number.POSITIVE_INFINITY, 'fenced');
    await next.pod();
    expect({ nodeStates: compute.nodeStates, writers: compute.writers.size }).toEqual({
      nodeStates: [],
      writers: 0,
    });
    await next.handle.signal('cancel');
    expect(await next.result()).toMatchObject({ outcome: 'aborted' });
    expectNothingLeft({ compute, ci });
  });

  test('a runner that ends while its credential is rejected: pod and Secret are deleted at once, and the registration is handed off after timeouts.unregistration', async () => {
    await busyRunner({ timeouts: { unregistration: '20s' } });
    ci.script.push({
      method: 'remove',
      answer: new CiServerError('credentials', 'Bad credentials', { status: 401 }),
      repeat: true,
    });
    compute.end(pod, 137);
    await run.reaches(
      'Unregistering, with pod and Secret deleted',
      ({ phase }) => phase === 'Unregistering' && compute.pods.size + compute.secrets.size === 0,
    );
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'failed',
      deregistrationWorkflowId: `deregistration-${runnerName}`,
    });
    expect(ci.registrations.size).toBe(1);
  });
});
