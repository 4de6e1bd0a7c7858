import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { cancellationSignal } from '@temporalio/activity';
import { CiServerError } from '../../activities/ports/ciServerError.ts';
import { ComputeError } from '../../activities/ports/computeError.ts';
import type { Registration } from '../../activities/ports/ciServer.ts';
import type { RegisterRequest } from '../../core/domain/ciServer.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld, RunnerRun } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import { until } from '../support/until.ts';

class SlowCiServer extends FakeCiServer {
  /** A registration is answered once its caller was told that it is not wanted any more. */
  answersWhenCalledOff = false;

  override async register(request: RegisterRequest): Promise<Registration> {
    const registration = await super.register(request);
    if (this.answersWhenCalledOff) await once(cancellationSignal(), 'abort');
    return registration;
  }
}

/** A provisioning that is cancelled, reset, or meets another runner of its name, on the real Temporal server. */
await describeWithLab('provisioning', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: SlowCiServer;
  let world: HoldfastWorld;
  let run: RunnerRun;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab, new SlowCiServer()));
  });
  afterEach(async () => await world.close());

  async function doesItsJob(): Promise<void> {
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', ({ phase }) => phase === 'Idle');
    ci.connect(runnerName);
    compute.startJob(pod);
    await run.reaches('Busy', ({ phase }) => phase === 'Busy');
    ci.forget(runnerName);
    compute.endJob(pod);
    compute.end(pod, 0);
  }

  /** Resets the workflow to its first task: everything is decided anew. */
  async function reset(): Promise<void> {
    const { workflowId } = run.handle;
    const { events } = await run.handle.fetchHistory();
    const first = events?.find(
      ({ workflowTaskCompletedEventAttributes: completed }) =>
        completed !== null && completed !== undefined,
    );
    const { runId } = await world.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId },
      reason: 'test',
      requestId: `reset-${workflowId}`,
      workflowTaskFinishEventId: first?.eventId ?? null,
    });
    await until(
      'the new run',
      async () => (await world.client.workflow.getHandle(workflowId).describe()).runId === runId,
    );
  }

  test('a reset workflow finds its Secret, its registration and its pod', async () => {
    run = await world.start();
    const pod = await run.pod();
    const { uid } = compute.pods.get(pod) ?? {};
    await reset();
    expect(await run.pod()).toBe(pod);
    await doesItsJob();
    expect(await world.client.workflow.getHandle(run.handle.workflowId).result()).toMatchObject({
      outcome: 'succeeded',
      attempt: 1,
      runnerId: '1',
    });
    expect({ pods: compute.created.length, removed: ci.count('remove') }).toEqual({
      pods: 1,
      removed: 0,
    });
    expect(uid).toBeDefined();
    expectNothingLeft({ compute, ci });
  });

  test.each([
    [
      'a first try has registered nothing: whoever has its name',
      { online: false, busy: false },
      [],
    ],
    [
      'a first try has registered nothing: whoever is online under its name',
      { online: true, busy: false },
      [],
    ],
    [
      'nobody has used what a lost try registered: whoever is online under its name',
      { online: true, busy: false },
      [new CiServerError('unavailable', 'Bad Gateway', { status: 502 })],
    ],
    [
      'nobody has used what a lost try registered: whoever is busy under its name',
      { online: false, busy: true },
      [new CiServerError('unavailable', 'Bad Gateway', { status: 502 })],
    ],
  ])("%s is not changed, and Holdfast's gets another name", async (_what, stranger, before) => {
    ci.strangers.push(stranger);
    ci.script.push(...before.map((answer) => ({ method: 'register' as const, answer })));
    run = await world.start();
    const { runnerName } = await run.reaches('a pod', ({ pod }) => pod !== undefined);
    expect(runnerName).toMatch(/-r2$/);
    const name = runnerName.replace(/-r2$/, '');
    await doesItsJob();
    expect(await run.result()).toMatchObject({
      outcome: 'succeeded',
      runnerName: `${name}-r2`,
      replacements: [],
    });
    expect([...ci.registrations.values()]).toEqual([{ id: expect.any(String), name, ...stranger }]);
  });

  test('if every name is in use the runner ends errored, without an effect on the others', async () => {
    ci.strangers.push(...Array.from({ length: 3 }, () => ({ online: false, busy: false })));
    run = await world.start();
    expect(await run.result()).toMatchObject({
      outcome: 'errored',
      message: expect.stringContaining('Already exists'),
    });
    expect({
      strangers: ci.registrations.size,
      removed: ci.count('remove'),
      pods: compute.created.length,
    }).toEqual({ strangers: 3, removed: 0, pods: 0 });
  });

  test('a registration whose Secret is rejected is removed by its ID, in each attempt', async () => {
    compute.refusals.set(
      'storeRegistrationSecret',
      () => new ComputeError('quota_exceeded', 'exceeded quota: secrets', { retryAfterMs: 50 }),
    );
    run = await world.start();
    await until('several tries', () => ci.count('register') >= 3);
    expect(ci.count('find')).toBe(0);
    await run.handle.signal('cancel');
    expect(await run.result()).toMatchObject({ outcome: 'aborted' });
    expectNothingLeft({ compute, ci });
  });

  test('cancelled during the registration: it creates nothing more, and removes its registration', async () => {
    ci.answersWhenCalledOff = true;
    run = await world.start();
    await until('a registration under way', () => ci.count('register') === 1);
    await run.handle.signal('cancel');
    expect(await run.result()).toMatchObject({ outcome: 'aborted' });
    expect({ pods: compute.created.length, removed: ci.count('remove') }).toEqual({
      pods: 0,
      removed: 1,
    });
    expectNothingLeft({ compute, ci });
  });

  test('an interrupted provisioning may still create objects: the workflow waits for them, and deletes them', async () => {
    ci.script.push({
      method: 'register',
      answer: new CiServerError('unavailable', 'down'),
      repeat: true,
    });
    run = await world.start({ intervals: { lateCreationWindow: '20s' } });
    await until('a try', () => ci.count('register') >= 1);
    await run.handle.signal('cancel');
    const { runnerName } = await run.reaches(
      'waiting',
      ({ waitingFor }) =>
        waitingFor === 'objects that the interrupted provisioning may still create',
    );
    const { workflowId } = run.handle;
    const identity = { workflowId, firstRunId: (await run.handle.describe()).runId, attempt: 1 };
    await compute.storeRegistrationSecret(identity, {
      runnerName,
      runnerId: ci.connect(runnerName, false),
      env: {},
    });
    await compute.createPod({ identity, labels: {}, terminationGracePeriodSeconds: 30 });
    expect(await run.result()).toMatchObject({ outcome: 'aborted' });
    expectNothingLeft({ compute, ci });
  });
});
