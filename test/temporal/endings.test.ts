/** Every way to end a runner, from every phase of its life: what is left of it anywhere, and whether its job lived. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { CancelMode, RunnerPhase } from '../../core/contract/index.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld, RunnerRun } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';

type Phase = Exclude<RunnerPhase, 'Gone'>;
/** Grace periods of the deletions, in their order; `own`: the pod's own. */
type Graces = readonly (number | 'own')[];
type Job = 'none' | 'lived' | 'stopped';

await describeWithLab('ended in every phase', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;
  /** What holds the world in the phase that the life is in. */
  let letGo: () => Promise<void>;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
    letGo = async () => undefined;
  });
  afterEach(async () => await world.close());

  async function reach(phase: Phase): Promise<RunnerRun> {
    if (phase === 'Requested') {
      await world.suspend();
      letGo = async () => await world.resume();
      return await world.start();
    }
    // A pod that tells passes this phase by, unless it takes long.
    if (phase === 'Registering') compute.probes = false;
    const run = await world.start();
    const pod = await run.pod();
    const is = async (wanted: RunnerPhase): Promise<void> =>
      void (await run.reaches(wanted, (status) => status.phase === wanted));
    if (phase === 'Provisioning') return run;
    compute.start(pod);
    await is(phase === 'Registering' ? phase : 'Idle');
    if (phase === 'Registering' || phase === 'Idle') return run;
    if (phase === 'Unregistering') {
      const held = Promise.withResolvers<void>();
      ci.removalHeld = held.promise;
      letGo = async () => held.resolve();
      compute.end(pod, 1);
    } else if (phase === 'TearingDown') {
      compute.onDelete = 'linger';
      await run.handle.signal('cancel', { mode: 'drain', reason: 'before' });
      letGo = async () => {
        if (compute.deletions.length === 1) compute.vanish(pod);
      };
    } else {
      ci.setBusy((await run.status()).runnerName, true);
      compute.startJob(pod);
      await is('Busy');
      if (phase === 'Draining')
        await run.handle.signal('cancel', { mode: 'drain', reason: 'before' });
    }
    await is(phase);
    // The phase is told before its first deletion is asked for, and what is not yet asked to go cannot be let go.
    if (phase === 'TearingDown')
      await run.reaches('its deletion', () => compute.deletions.length === 1);
    return run;
  }

  /** The job that was let be ends, and with it its runner. */
  async function finishJob(run: RunnerRun): Promise<void> {
    const { pod = '', runnerName } = await run.reaches(
      'Draining',
      ({ phase, cancel }) => phase === 'Draining' && cancel !== undefined,
    );
    expect(compute.deletions).toEqual([]);
    ci.forget(runnerName);
    compute.endJob(pod);
    compute.change(pod, {
      ended: true,
      exit: { code: 0, oomKilled: false, record: { job: 'completed' } },
    });
  }

  /** Nothing of it is left, but a registration that somebody goes on removing. */
  async function expectWorld(
    deregistration: string | undefined,
    job: Job,
    graces: Graces,
  ): Promise<void> {
    for (const entry of ci.registrations.values()) entry.busy = false;
    if (deregistration !== undefined)
      await world.client.workflow.getHandle(deregistration).result();
    expect({
      pods: compute.pods.size,
      secrets: compute.secrets.size,
      registrations: ci.registrations.size,
    }).toEqual({ pods: 0, secrets: 0, registrations: 0 });
    expect(compute.deletions.map(({ gracePeriodSeconds = 'own' }) => gracePeriodSeconds)).toEqual(
      graces,
    );
    expect(compute.deletions.some(({ underJob }) => underJob)).toBe(job === 'stopped');
  }

  test.each<[Phase, CancelMode, Job, Graces]>([
    ['Requested', 'drain', 'none', []],
    ['Requested', 'stop', 'none', []],
    ['Requested', 'force', 'none', []],
    ['Provisioning', 'drain', 'none', ['own']],
    ['Provisioning', 'stop', 'none', ['own']],
    ['Provisioning', 'force', 'none', [1]],
    ['Registering', 'drain', 'none', ['own']],
    ['Registering', 'stop', 'none', ['own']],
    ['Registering', 'force', 'none', [1]],
    ['Idle', 'drain', 'none', ['own']],
    ['Idle', 'stop', 'none', ['own']],
    ['Idle', 'force', 'none', [1]],
    ['Busy', 'drain', 'lived', ['own']],
    ['Busy', 'stop', 'stopped', ['own']],
    ['Busy', 'force', 'stopped', [1]],
    ['Draining', 'drain', 'lived', ['own']],
    ['Draining', 'stop', 'stopped', ['own']],
    ['Draining', 'force', 'stopped', [1]],
    ['Unregistering', 'drain', 'none', ['own']],
    ['Unregistering', 'stop', 'none', ['own']],
    ['Unregistering', 'force', 'none', ['own']],
    ['TearingDown', 'drain', 'none', ['own']],
    ['TearingDown', 'stop', 'none', ['own']],
    ['TearingDown', 'force', 'none', ['own', 1]],
  ])('%s, cancel %s: its job %s', async (phase, mode, job, graces) => {
    const run = await reach(phase);
    await run.handle.signal('cancel', { mode, reason: 'why' });
    if (phase === 'TearingDown' && mode === 'force')
      await run.reaches('the force', () => compute.deletions.length === 2);
    await letGo();
    if (job === 'lived') await finishJob(run);
    const result = await run.result();
    // Its exit code was known by then.
    const ended = phase === 'Unregistering';
    expect(result).toMatchObject(
      ended ? { outcome: 'failed', exitCode: 1 } : { outcome: 'aborted', cause: 'cancelled' },
    );
    await expectWorld(result.deregistrationWorkflowId, job, graces);
  });

  test.each<[how: string, cancel: (run: RunnerRun) => Promise<void>]>([
    ['cancel stop', async ({ handle }) => await handle.signal('cancel', 'why')],
    ['cancel force', async ({ handle }) => await handle.signal('cancel', { mode: 'force' })],
    ['plain cancellation', async ({ handle }) => void (await handle.cancel())],
  ])('%s during the teardown of a completed job: it succeeded', async (_, cancel) => {
    const run = await reach('Busy');
    const { pod = '', runnerName } = await run.status();
    compute.onDelete = 'linger';
    compute.slowToGo = true;
    ci.forget(runnerName);
    compute.end(pod, 0);
    await run.reaches('its tear-down', ({ phase }) => phase === 'TearingDown');
    await cancel(run);
    await run.reaches('the cancel', (status) => status.cancel !== undefined);
    compute.vanish(pod);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded', exitCode: 0 });
  });

  test.each<[Phase, Job, Graces]>([
    ['Provisioning', 'none', ['own']],
    ['Registering', 'none', ['own']],
    ['Idle', 'none', ['own']],
    ['Busy', 'lived', ['own']],
  ])('%s, drained: its job %s', async (phase, job, graces) => {
    const run = await reach(phase);
    await run.handle.executeUpdate('drain', { args: [{ reason: 'why' }] });
    if (job === 'lived') await finishJob(run);
    const result = await run.result();
    expect(result).toMatchObject({ outcome: 'succeeded', message: expect.stringContaining('why') });
    await expectWorld(result.deregistrationWorkflowId, job, graces);
  });

  test('a stronger cancellation during the teardown: the pod keeps its grace period, unless it is forced', async () => {
    const run = await reach('TearingDown');
    await run.reaches('a wait for its pod', ({ waitingFor }) => waitingFor === 'pod to be gone');
    await run.handle.signal('cancel', { mode: 'stop', reason: 'second' });
    await run.reaches(
      'the stop accepted, and the pod waited for again',
      ({ cancel, waitingFor }) => cancel?.mode === 'stop' && waitingFor === 'pod to be gone',
    );
    await run.handle.signal('cancel', { mode: 'force', reason: 'third' });
    expect(await run.result()).toMatchObject({
      outcome: 'aborted',
      message: expect.stringContaining('before'),
    });
    await expectWorld(undefined, 'none', ['own', 1]);
  });

  test('TearingDown, drained: it is already ending', async () => {
    const run = await reach('TearingDown');
    await expect(
      run.handle.executeUpdate('drain', { args: [{ reason: 'why' }] }),
    ).rejects.toMatchObject({ cause: { message: 'the runner is already TearingDown' } });
    await letGo();
    expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
    await expectWorld(undefined, 'none', ['own']);
  });
});
