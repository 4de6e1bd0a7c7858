import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { CiServerError } from '../../activities/ports.ts';
import { busy, type FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld, RunnerRun } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';
import { DEREGISTRATION_WORKFLOW, type RunnerInput } from '../../core/contract/index.ts';

/** Every row of the unregistration table, on the real Temporal server. */
await describeWithLab('unregistration', { temporal: true }, (lab) => {
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

  async function idleRunner(input: Partial<RunnerInput> = {}): Promise<void> {
    run = await world.start(input);
    pod = await run.pod();
    compute.start(pod);
    ({ runnerName } = await run.status());
    ci.connect(runnerName);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
  }

  async function busyRunner(input: Partial<RunnerInput> = {}): Promise<void> {
    await idleRunner(input);
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    if (compute.probes) await run.reaches('Busy', (status) => status.phase === 'Busy');
  }

  async function drain(): Promise<void> {
    await run.handle.executeUpdate('drain', { args: [] });
  }

  async function finishJob(): Promise<void> {
    ci.forget(runnerName);
    compute.endJob(pod);
    compute.end(pod, 0);
  }

  const removals = () => ci.count('remove');
  const calledOff = async (): Promise<boolean> =>
    ((await run.handle.fetchHistory()).events ?? []).some(
      ({ activityTaskCancelRequestedEventAttributes: off }) => off !== null && off !== undefined,
    );

  test('row 2: an ephemeral runner that ended its job with 0 has removed itself: no call', async () => {
    await busyRunner();
    await finishJob();
    expect(await run.result()).toMatchObject({ outcome: 'succeeded', unregisterAttempts: 0 });
    expect(removals()).toBe(0);
  });

  test('row 3: 204, and the runner says it is idle: the pod goes', async () => {
    await idleRunner();
    await drain();
    expect(await run.result()).toMatchObject({ outcome: 'succeeded', unregisterAttempts: 1 });
    expect(compute.deletions).toMatchObject([{ underJob: false }]);
    expect(ci.registrations.size).toBe(0);
  });

  test('row 3: a 204 for a runner that has just started a job never costs the job', async () => {
    compute.probes = false;
    await busyRunner();
    ci.lies = true;
    await drain();
    await until('the lie', () => removals() === 1);
    await run.reaches(
      'waiting for its end',
      (status) => status.waitingFor?.includes('ends by itself') === true,
    );
    expect(compute.deletions).toEqual([]);
    await finishJob();
    expect((await run.result()).outcome).toBe('succeeded');
    expect(compute.deletions.filter((deletion) => deletion.underJob)).toEqual([]);
  });

  test('row 3: a static runner that says it is busy outlives a 204', async () => {
    await busyRunner({ ephemeral: false });
    ci.lies = true;
    await drain();
    await until('the lie', () => removals() === 1);
    expect(compute.deletions).toEqual([]);
    compute.endJob(pod);
    await run.result();
    expect(compute.deletions).toMatchObject([{ underJob: false }]);
  });

  test('row 4: a runner about to register survives a 404 and is removed once it has', async () => {
    compute.probes = false;
    run = await world.start({ ephemeral: false });
    pod = await run.pod();
    compute.start(pod);
    ({ runnerName } = await run.reaches('Registering', (status) => status.phase === 'Registering'));
    await drain();
    await until('several looks', () => ci.count('find') >= 4);
    expect(compute.deletions).toEqual([]);
    ci.connect(runnerName);
    await until('its removal', () => ci.registrations.size === 0 && removals() === 1);
    compute.end(pod, 0);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
  });

  test('row 4: what has not registered by its deadline never will', async () => {
    compute.probes = false;
    run = await world.start({ ephemeral: false, timeouts: { registration: '400ms' } });
    pod = await run.pod();
    compute.start(pod);
    expect(await run.result()).toMatchObject({ outcome: 'errored', cause: 'never_registered' });
    expect(compute.pods.size).toBe(0);
  });

  test('row 4: busy by its own signal beats any 404', async () => {
    await busyRunner({ ephemeral: false });
    ci.script.push({ method: 'remove', answer: 'absent', repeat: true });
    ci.script.push({ method: 'find', answer: 'absent', repeat: true });
    await drain();
    await run.reaches(
      'waiting for the job',
      (status) => status.waitingFor?.includes('job is running') === true,
    );
    expect(compute.deletions).toEqual([]);
    compute.endJob(pod);
    await run.result();
    expect(compute.deletions).toMatchObject([{ underJob: false }]);
  });

  test('row 5: stop accepted and 422: the pod is stopped by its own grace, then decided again', async () => {
    await busyRunner();
    await run.handle.signal('cancel');
    const result = await run.result();
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(compute.deletions[0]).toMatchObject({ gracePeriodSeconds: undefined, underJob: true });
    expect(removals()).toBeGreaterThanOrEqual(2);
  });

  test('row 5: force does not wait for the CI server', async () => {
    await busyRunner();
    ci.script.push({
      method: 'remove',
      answer: new CiServerError('unavailable', 'down'),
      repeat: true,
    });
    await run.handle.signal('cancel', { mode: 'force' });
    await until('the kill', () => compute.deletions.length === 1);
    expect(compute.deletions[0]).toMatchObject({ gracePeriodSeconds: 1 });
    ci.script.length = 0;
    ci.setBusy(runnerName, false);
    expect((await run.result()).outcome).toBe('aborted');
  });

  test('row 5: a force after a stop does not wait for an answer that the stop still waits for', async () => {
    await busyRunner();
    const { promise, resolve } = Promise.withResolvers<void>();
    ci.removalHeld = promise;
    await run.handle.signal('cancel');
    await until('the removal', () => removals() === 1);
    await run.handle.signal('cancel', { mode: 'force' });
    await until('the kill', () => compute.deletions.length === 1);
    expect(compute.deletions[0]).toMatchObject({ gracePeriodSeconds: 1 });
    resolve();
    ci.setBusy(runnerName, false);
    expect((await run.result()).outcome).toBe('aborted');
  });

  test('row 5: a stop does not wait for ever for a CI server that does not answer', async () => {
    await busyRunner({ intervals: { stopResponseTimeout: '300ms' } });
    ci.script.push({
      method: 'remove',
      answer: new CiServerError('rate_limited', 'wait', { retryAfterMs: 3_600_000 }),
    });
    await run.handle.signal('cancel');
    await until('the stop', () => compute.deletions.length === 1);
    expect(compute.deletions[0]).toMatchObject({ gracePeriodSeconds: undefined });
    ci.setBusy(runnerName, false);
    expect((await run.result()).outcome).toBe('aborted');
  });

  test('row 6: a busy ephemeral runner is not asked about again and again; a safety re-check, and its end, wake', async () => {
    compute.probes = false;
    await busyRunner({ intervals: { busyCheck: '300ms' } });
    await drain();
    await until('the safety re-check', () => removals() >= 2);
    expect(compute.deletions).toEqual([]);
    await finishJob();
    expect((await run.result()).outcome).toBe('succeeded');
    expect(removals()).toBeLessThan(20);
  });

  test('row 7: a busy static runner is asked for ever, in one activity', async () => {
    await busyRunner({ ephemeral: false });
    ci.script.push(
      ...Array.from({ length: 5 }, () => ({ method: 'remove' as const, answer: busy() })),
    );
    await drain();
    await until('five refusals', () => removals() >= 5);
    expect(compute.deletions).toEqual([]);
    ci.setBusy(runnerName, false);
    compute.endJob(pod);
    const result = await run.result();
    expect(result.unregisterAttempts).toBeGreaterThanOrEqual(5);
    const { events } = await run.handle.fetchHistory();
    const releases =
      events?.filter(
        (event) =>
          event.activityTaskScheduledEventAttributes?.activityType?.name === 'removeRegistration',
      ) ?? [];
    expect(releases.length).toBeLessThanOrEqual(2);
  });

  test.each(['probes', 'none'] as const)(
    'row 7: a static runner is stopped when its job has had its time, also in a drain (tells by: %s)',
    async (tells) => {
      compute.probes = tells === 'probes';
      await busyRunner({ ephemeral: false, timeouts: { jobTimeout: '3s' } });
      await drain();
      const { waitingFor, waitingUntil } = await run.reaches(
        'its refusal',
        (status) => status.phase === 'Draining' && removals() > 1,
      );
      expect(waitingFor).toContain('until its job ends');
      expect(Date.parse(waitingUntil ?? '')).toBeGreaterThan(Date.now() - 3_000);
      expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
    },
  );

  test('row 6: ... an ephemeral one that does not tell is, too, from when the CI server calls it busy', async () => {
    compute.probes = false;
    await busyRunner({ timeouts: { jobTimeout: '3s' } });
    await drain();
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
  });

  test('row 7: a refusal that comes while the call is called off is no reason to touch the runner: its job goes on', async () => {
    await idleRunner({ ephemeral: false });
    ci.setBusy(runnerName, true);
    let answer = (): void => undefined;
    ci.removalHeld = new Promise((resolve) => (answer = resolve));
    await drain();
    await until('a DELETE under way', () => removals() === 1);
    compute.startJob(pod);
    await until('it called off', async () => await calledOff());
    answer();
    await until('it asked again', () => removals() > 2);
    expect(compute.deletions).toEqual([]);
    ci.setBusy(runnerName, false);
    compute.endJob(pod);
    const result = await run.result();
    expect(result).toMatchObject({ outcome: 'succeeded' });
    expect(result.deregistrationWorkflowId).toBeUndefined();
    expect(compute.deletions.filter(({ underJob }) => underJob)).toEqual([]);
  });

  test('row 4a: the answer of the removal is lost, and the runner leaves because of it: it was drained, whatever its status', async () => {
    await idleRunner({ ephemeral: false });
    let lose = (_error: Error): void => undefined;
    ci.removalHeld = new Promise((_resolve, reject) => (lose = reject));
    await drain();
    await until('a DELETE under way', () => removals() === 1);
    ci.forget(runnerName);
    compute.end(pod, 1);
    await until('it called off', async () => await calledOff());
    ci.removalHeld = undefined;
    lose(new Error('connection lost'));
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
  });

  test('row 8: ended but still busy there: the compute goes at once, the registration is handed on and removed later', async () => {
    await busyRunner();
    compute.end(pod, 137);
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'failed',
      exitCode: 137,
      deregistrationWorkflowId: expect.stringContaining(runnerName),
    });
    expect(compute.pods.size + compute.secrets.size).toBe(0);
    expect(ci.registrations.size).toBe(1);
    ci.setBusy(runnerName, false);
    expect(
      await world.client.workflow.getHandle(result.deregistrationWorkflowId ?? '').result(),
    ).toMatchObject({ outcome: 'removed' });
    expect(ci.registrations.size).toBe(0);
  });

  test('row 8: somebody removes the registration already: it is left to them', async () => {
    await busyRunner();
    const workflowId = `deregistration-${runnerName}`;
    await world.client.workflow.start(DEREGISTRATION_WORKFLOW, {
      workflowId,
      taskQueue: world.taskQueue,
      args: [{ organization: 'acme', runner: { name: runnerName }, initialRetryInterval: '100ms' }],
    });
    compute.end(pod, 137);
    expect(await run.result()).toMatchObject({
      outcome: 'failed',
      deregistrationWorkflowId: workflowId,
    });
    ci.setBusy(runnerName, false);
    expect(await world.client.workflow.getHandle(workflowId).result()).toMatchObject({
      outcome: 'removed',
    });
  });

  test.each([
    [
      'row 9: a rate limit',
      new CiServerError('rate_limited', 'You have exceeded a secondary rate limit', {
        status: 403,
        retryAfterMs: 200,
      }),
    ],
    [
      'row 10: a refused credential, or a 404 on lost access',
      new CiServerError('credentials', 'Not Found', { status: 404 }),
    ],
    ['row 11: a server error', new CiServerError('unavailable', 'Bad Gateway', { status: 502 })],
  ])('%s is no verdict: asked again, the pod left alone', async (_row, error) => {
    await busyRunner({ ephemeral: false });
    ci.script.push({ method: 'remove', answer: error }, { method: 'remove', answer: error });
    await drain();
    await until('three tries', () => removals() >= 3);
    expect(compute.deletions).toEqual([]);
    ci.setBusy(runnerName, false);
    compute.endJob(pod);
    expect((await run.result()).outcome).toBe('succeeded');
    expect(compute.deletions.filter((deletion) => deletion.underJob)).toEqual([]);
  });

  test('an unknown refusal (422 that is not "busy") is no verdict either', async () => {
    await idleRunner();
    ci.script.push({
      method: 'remove',
      answer: new CiServerError('rejected', 'Validation Failed', { status: 422 }),
    });
    await drain();
    expect((await run.result()).outcome).toBe('succeeded');
    expect(removals()).toBe(2);
  });

  test('cancelled while it cannot be provisioned: nothing is left, and the life does not wait for the CI server', async () => {
    ci.script.push({
      method: 'register',
      answer: new CiServerError('unavailable', 'down'),
      repeat: true,
    });
    run = await world.start();
    await until('a try', () => ci.count('register') >= 1);
    await run.handle.signal('cancel', 'not needed any more');
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(compute.pods.size + compute.secrets.size + ci.registrations.size).toBe(0);
  });

  test('provisioning that never succeeds ends errored, with its cause', async () => {
    ci.script.push({
      method: 'register',
      answer: new CiServerError('credentials', 'Bad credentials', { status: 401 }),
      repeat: true,
    });
    run = await world.start({ timeouts: { provisioning: '4s' } });
    expect(await run.result()).toMatchObject({
      outcome: 'errored',
      cause: 'credentials',
      message: expect.stringContaining('Bad credentials'),
    });
  });
});
