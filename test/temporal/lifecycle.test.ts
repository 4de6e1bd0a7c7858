import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld, RunnerRun } from '../support/holdfastWorld.ts';

await describeWithLab('the lifecycle of a runner', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  /** GitHub's side of an ephemeral runner's job: busy, then gone. */
  async function runJob(run: RunnerRun, pod: string): Promise<void> {
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    ci.forget(runnerName);
    compute.endJob(pod);
    compute.end(pod, 0);
  }

  test('an ephemeral runner: every phase, no removal of its registration, nothing left', async () => {
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    await runJob(run, pod);
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      exitCode: 0,
      attempt: 1,
      unregisterAttempts: 0,
      replacements: [],
    });
    expect(result.phases.map((entry) => entry.phase)).toEqual([
      'Provisioning',
      'Idle',
      'Busy',
      'TearingDown',
      'Gone',
    ]);
    expect(ci.calls.map((call) => call.method)).toEqual(['register']);
    const { currentDetails } = await run.handle.query<{ currentDetails?: string }>(
      '__temporal_workflow_metadata',
    );
    expect(currentDetails?.split('\n').slice(0, 4)).toEqual([
      '| Runner | Gone |',
      '|---|---|',
      '| Outcome | succeeded |',
      `| Message | ${result.message} |`,
    ]);
    expectNothingLeft({ compute, ci });
  });

  test('an ephemeral runner after its job: its pod is deleted as soon as its end is known', async () => {
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.forget(runnerName);
    compute.change(pod, {
      ended: true,
      exit: { code: 0, oomKilled: false, record: { job: 'completed' } },
    });
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      exitCode: 0,
      unregisterAttempts: 0,
      replacements: [],
    });
    expect(compute.deletions).toMatchObject([
      { name: pod, reason: 'its job is done, and its workflow knows' },
    ]);
    expectNothingLeft({ compute, ci });
  });

  test('a pod without probes: the CI server is queried until the runner is online, and its own removal is believed', async () => {
    compute.probes = false;
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches(
      'Registering',
      (status) => status.phase === 'Registering',
    );
    ci.connect(runnerName);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.forget(runnerName);
    compute.end(pod, 0);
    const result = await run.result();
    expect(result.outcome).toBe('succeeded');
    expect(result.phases.map((entry) => entry.phase)).toEqual([
      'Provisioning',
      'Registering',
      'Idle',
      'Unregistering',
      'TearingDown',
      'Gone',
    ]);
    expectNothingLeft({ compute, ci });
  });

  test('a static runner runs several jobs, and is drained while busy: retried until its job has ended', async () => {
    const run = await world.start({ ephemeral: false });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.connect(runnerName);
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    compute.endJob(pod);
    await run.reaches('Idle again', (status) => status.phase === 'Idle');
    compute.startJob(pod);
    ci.setBusy(runnerName, true);
    await run.reaches('Busy again', (status) => status.phase === 'Busy');
    await run.handle.executeUpdate('drain', { args: [{ reason: 'node maintenance' }] });
    await run.reaches('several refusals', () => ci.count('remove') >= 3);
    expect(compute.deletions).toEqual([]);
    ci.setBusy(runnerName, false);
    compute.endJob(pod);
    const result = await run.result();
    expect(result.outcome).toBe('succeeded');
    expect(result.unregisterAttempts).toBeGreaterThanOrEqual(3);
    expectNothingLeft({ compute, ci });
  });

  test('cancel stop while busy: a removal is tried, then the pod is stopped gracefully, and the registration handed off', async () => {
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    await run.handle.signal('cancel', { reason: 'superseded by hand' });
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'aborted',
      cause: 'cancelled',
      message: expect.stringContaining('superseded by hand'),
    });
    expect(compute.deletions[0]).toMatchObject({ gracePeriodSeconds: undefined, underJob: true });
    // GitHub frees the dead runner later; until then somebody goes on trying.
    ci.setBusy(runnerName, false);
    const deregistration = await world.client.workflow
      .getHandle(result.deregistrationWorkflowId ?? '')
      .result();
    expect(deregistration).toMatchObject({ outcome: 'removed' });
    expect(ci.registrations.size).toBe(0);
  });

  test('a stronger cancellation upgrades; a weaker one never downgrades', async () => {
    compute.onDelete = 'linger';
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    await run.handle.signal('cancel', { mode: 'drain', reason: 'first' });
    await run.reaches('Draining', (status) => status.phase === 'Draining');
    expect(compute.deletions).toEqual([]);
    await run.handle.signal('cancel', { mode: 'stop', reason: 'second' });
    await run.reaches('a graceful stop', () => compute.deletions.length === 1);
    await run.handle.signal('cancel', { mode: 'drain', reason: 'third' });
    await run.handle.signal('cancel', { mode: 'force', reason: 'fourth' });
    const result = await run.result();
    expect(compute.deletions.map((deletion) => deletion.gracePeriodSeconds).slice(0, 2)).toEqual([
      undefined,
      1,
    ]);
    expect(result).toMatchObject({
      outcome: 'aborted',
      cause: 'cancelled',
      message: expect.stringContaining('fourth'),
    });
  });

  test("Temporal's cancellation is a stop, and the only one that ends the workflow Cancelled", async () => {
    const run = await world.start();
    compute.start(await run.pod());
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    await run.handle.cancel();
    await expect(run.result()).rejects.toThrow('Workflow execution cancelled');
    expect((await run.handle.describe()).status.name).toBe('CANCELLED');
    expectNothingLeft({ compute, ci });
  });

  test('a pod that vanishes while idle is replaced with a new name, and the old registration removed', async () => {
    const run = await world.start();
    const first = await run.pod();
    compute.start(first);
    const { runnerName: lost } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    compute.vanish(first);
    const second =
      (
        await run.reaches(
          'the second pod',
          (status) => status.attempt === 2 && status.pod !== undefined && status.pod !== first,
        )
      ).pod ?? '';
    compute.start(second);
    await runJob(run, second);
    const result = await run.result();
    expect(result).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      replacements: [
        { runnerName: lost, cause: 'deleted_externally', replacedBy: result.runnerName },
      ],
    });
    expect(result.runnerName).not.toBe(lost);
    expectNothingLeft({ compute, ci });
  });

  test.each([
    ['fail', { outcome: 'errored', cause: 'evicted', attempt: 1 }],
    ['replace', { outcome: 'succeeded', attempt: 2 }],
  ] as const)('a busy runner that is evicted: onEviction %s', async (onEviction, expected) => {
    const run = await world.start({ onEviction });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    compute.end(pod, 143, { terminating: true, disruptionReason: 'EvictionByEvictionAPI' });
    if (onEviction === 'replace') {
      const second =
        (
          await run.reaches(
            'the second pod',
            (status) => status.attempt === 2 && status.pod !== undefined && status.pod !== pod,
          )
        ).pod ?? '';
      compute.start(second);
      await runJob(run, second);
    }
    expect(await run.result()).toMatchObject(expected);
  });

  test('a runner evicted while idle, whose probes fail at its end: its record shows that it had no job', async () => {
    const run = await world.start();
    const first = await run.pod();
    compute.start(first);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    compute.change(first, {
      terminating: true,
      disruptionReason: 'EvictionByEvictionAPI',
      busy: true,
    });
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    compute.change(first, {
      ended: true,
      exit: { code: 143, oomKilled: false, record: { reason: 'cancelled', job: 'none' } },
    });
    const second =
      (
        await run.reaches(
          'the second pod',
          (status) => status.attempt === 2 && status.pod !== undefined && status.pod !== first,
        )
      ).pod ?? '';
    compute.start(second);
    await runJob(run, second);
    expect(await run.result()).toMatchObject({
      outcome: 'succeeded',
      attempt: 2,
      replacements: [{ cause: 'evicted' }],
    });
    expectNothingLeft({ compute, ci });
  });

  test.each([
    [{ code: 7 }, { outcome: 'errored', cause: 'runner_deprecated' }],
    [{ code: 3 }, { outcome: 'failed', exitCode: 3 }],
    [
      { code: 137, oomKilled: true },
      { outcome: 'failed', cause: 'oom_killed' },
    ],
  ])(
    'a runner that ends with %p, however long the deletion of its pod takes',
    async ({ code, ...more }, expected) => {
      compute.slowToGo = true;
      const run = await world.start();
      const pod = await run.pod();
      compute.start(pod);
      await run.reaches('Idle', (status) => status.phase === 'Idle');
      compute.end(pod, code, more);
      expect(await run.result()).toMatchObject({ ...expected, attempt: 1 });
      expectNothingLeft({ compute, ci });
    },
  );

  test.each([
    [
      'an image that cannot be pulled',
      {
        scheduled: true,
        problem: {
          kind: 'invalid_image',
          message: 'couldn’t parse image name',
          since: new Date().toISOString(),
        },
      },
      {},
      'image_pull',
    ],
    [
      'no node',
      { unschedulable: '0/3 nodes are available' },
      { podUnscheduled: '300ms' },
      'unschedulable',
    ],
    [
      'a container that does not start',
      { scheduled: true },
      { podUnscheduled: '200ms', podPending: '400ms' },
      'pending_timeout',
    ],
    [
      'a runner that never comes online',
      { scheduled: true, startedAt: new Date().toISOString() },
      { podUnscheduled: '200ms', registration: '300ms' },
      'never_registered',
    ],
  ] as const)('%s ends errored, and leaves nothing', async (_what, fields, timeouts, cause) => {
    // From its first moment: deadlines do not wait for a slow test.
    compute.born = {
      ...fields,
      ...(cause === 'never_registered' ? { startedAt: new Date().toISOString() } : {}),
    };
    const run = await world.start({ timeouts });
    expect(await run.result()).toMatchObject({ outcome: 'errored', cause });
    expectNothingLeft({ compute, ci });
  });

  test('the job timeout ends a runner by a graceful stop; extendDeadline moves it', async () => {
    const run = await world.start({ timeouts: { jobTimeout: '15s' } });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.setBusy(runnerName, true);
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    await run.handle.executeUpdate('extendDeadline', { args: [{ by: '2s' }] });
    const result = await run.result();
    expect(result).toMatchObject({ outcome: 'aborted', cause: 'run_timeout' });
    const busy = result.phases.findIndex(({ phase }) => phase === 'Busy');
    const [began, over] = result.phases.slice(busy, busy + 2).map(({ at }) => Date.parse(at)) as [
      number,
      number,
    ];
    expect(over - began).toBeGreaterThan(16_500);
    expect(compute.deletions[0]).toMatchObject({ gracePeriodSeconds: undefined });
  });

  test("extendDeadline is limited by the cap of the worker's configuration", async () => {
    const run = await world.start({ timeouts: { jobTimeout: '23h' } });
    const pod = await run.pod();
    compute.start(pod);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    compute.startJob(pod);
    const { waitingUntil = '' } = await run.reaches('Busy', (status) => status.phase === 'Busy');
    const extend = async (by: string): Promise<string> =>
      (
        (await run.handle.executeUpdate('extendDeadline', { args: [{ by }] })) as {
          jobDeadline: string;
        }
      ).jobDeadline;
    await expect(extend('61m')).rejects.toMatchObject({
      cause: {
        message: expect.stringMatching(
          /^by: must be at most 1h0m0s; .* 24h0m0s .*HOLDFAST_TIMEOUTS/,
        ),
      },
    });
    const [first, second] = await Promise.allSettled([extend('40m'), extend('40m')]);
    // Whether the second was refused, or shortened: never further than the cap.
    const latest = Math.max(
      ...[first, second].map((each) => (each?.status === 'fulfilled' ? Date.parse(each.value) : 0)),
    );
    expect(latest).toBeGreaterThanOrEqual(Date.parse(waitingUntil) + 39 * 60_000);
    expect(latest).toBeLessThanOrEqual(Date.parse(waitingUntil) + 61 * 60_000);
    await expect(extend('1h')).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/^by: must be at most /) },
    });
    await run.handle.signal('cancel');
    await run.result();
  });

  test('a runner that is stopped during its start: its end is observed', async () => {
    const run = await world.start();
    const pod = await run.pod();
    compute.change(pod, { scheduled: true, startedAt: new Date().toISOString() });
    const before = Date.now();
    await run.handle.signal('cancel');
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    expect(Date.now() - before).toBeLessThan(60_000);
    expectNothingLeft({ compute, ci });
  });

  test('a runner evicted during its job that exits with 0 has not removed itself', async () => {
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    compute.end(pod, 0, { terminating: true, disruptionReason: 'EvictionByEvictionAPI' });
    expect(await run.result()).toMatchObject({ outcome: 'errored', cause: 'evicted', runnerName });
    expectNothingLeft({ compute, ci });
  });

  test('an idle timeout drains the runner', async () => {
    const run = await world.start({ timeouts: { idle: '200ms' } });
    compute.start(await run.pod());
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'idle_timeout' });
    expectNothingLeft({ compute, ci });
  });

  test('invalid input fails immediately with every invalid field', async () => {
    const run = await world.start({
      organization: 'a',
      repository: 'b/c',
      labels: [],
      nonsense: 1,
    } as never);
    await expect(run.result()).rejects.toMatchObject({
      cause: {
        type: 'InvalidInput',
        message: expect.stringMatching(/labels .*nonsense|nonsense .*labels/),
      },
    });
    expect(compute.created).toEqual([]);
  });

  test('an unknown credential fails immediately with the known ones', async () => {
    const run = await world.start({ credential: 'nope' });
    await expect(run.result()).rejects.toMatchObject({
      cause: {
        type: 'InvalidInput',
        message:
          'Invalid input: credential: unknown credential "nope": the worker\'s config names default',
      },
    });
  });
});
