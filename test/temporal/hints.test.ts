import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { until } from '../support/until.ts';
import { SEARCH_ATTRIBUTES, jobEventSignal, podStateSignal } from '../../core/contract/index.ts';

await describeWithLab('hints that are late or lost', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  test('a job event makes a pod without probes busy; one about another runner has no effect', async () => {
    compute.probes = false;
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches(
      'Registering',
      (status) => status.phase === 'Registering',
    );
    await run.handle.signal(jobEventSignal, {
      action: 'in_progress',
      jobId: '1',
      runnerName: 'somebody-else',
    });
    const unmoved = await run.status();
    expect([unmoved.phase, unmoved.job]).toEqual(['Registering', undefined]);
    await run.handle.signal(jobEventSignal, {
      action: 'in_progress',
      jobId: '42',
      runnerName,
      jobName: 'build',
    });
    expect(await run.reaches('Busy', (status) => status.phase === 'Busy')).toMatchObject({
      job: 'build (42)',
    });
    ci.forget(runnerName);
    // By hand, with the number that GitHub shows.
    await run.handle.signal('jobEvent', { action: 'completed', jobId: 42, runnerName });
    compute.end(pod, 0);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded', unregisterAttempts: 0 });
    expectNothingLeft({ compute, ci });
  });

  test.each([true, false])(
    'an ephemeral runner that does not exit after its job is stopped (its pod reports: %s)',
    async (probes) => {
      compute.probes = probes;
      const run = await world.start({ timeouts: { exit: '1s' } });
      const pod = await run.pod();
      compute.start(pod);
      const [{ name: runnerName } = { name: '' }] = ci.registrations.values();
      const event = { jobId: '42', runnerName };
      // A pod that reports the job only after its end seems to have another one.
      if (probes) {
        compute.startJob(pod);
        await run.reaches('Busy', (status) => status.phase === 'Busy');
      }
      await run.handle.signal(jobEventSignal, { action: 'in_progress', ...event });
      await run.reaches('Busy', (status) => status.phase === 'Busy');
      ci.forget(runnerName);
      if (probes) compute.endJob(pod);
      const conclusion = 'success';
      await run.handle.signal(jobEventSignal, { action: 'completed', conclusion, ...event });
      await until('the deletion of the pod', () => compute.deletions.length > 0);
      compute.end(pod, 143);
      expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
      expectNothingLeft({ compute, ci });
    },
  );

  test('an event after the end of its job does not make the runner busy again', async () => {
    compute.probes = false;
    const run = await world.start({ ephemeral: false });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches(
      'Registering',
      (status) => status.phase === 'Registering',
    );
    ci.connect(runnerName);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    const starts = { action: 'in_progress', jobId: '42', runnerName, jobName: 'build' } as const;
    await run.handle.signal(jobEventSignal, starts);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    await run.handle.signal(jobEventSignal, { action: 'completed', jobId: '42', runnerName });
    await run.reaches('Idle again', (status) => status.phase === 'Idle');
    await run.handle.signal(jobEventSignal, starts);
    const { phase, job } = await run.status();
    expect([phase, job]).toEqual(['Idle', undefined]);
    await run.handle.executeUpdate('drain', { args: [] });
    await until('its removal', () => ci.registrations.size === 0);
    compute.end(pod, 0);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  test('an event about a waiting job: applied before the runner is known to be registered', async () => {
    compute.probes = false;
    const run = await world.start();
    const pod = await run.pod();
    const [{ name: runnerName } = { name: '' }] = ci.registrations.values();
    await run.handle.signal(jobEventSignal, {
      action: 'in_progress',
      jobId: '41',
      runnerName: `${runnerName}-r2`,
      jobName: 'of the next runner',
    });
    await run.handle.signal(jobEventSignal, {
      action: 'in_progress',
      jobId: '42',
      runnerName,
      jobName: 'build',
    });
    expect(await run.status()).toMatchObject({ phase: 'Provisioning', job: 'build (42)' });
    // So that the webhook finds it.
    const { typedSearchAttributes } = await run.handle.describe();
    expect(typedSearchAttributes.get(SEARCH_ATTRIBUTES.name)).toBe(runnerName);
    compute.start(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    ci.forget(runnerName);
    compute.end(pod, 0);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded', runnerName });
    expectNothingLeft({ compute, ci });
  });

  test('a runner whose busy state is reported late was busy since its start: so are its deadline and its record', async () => {
    const run = await world.start({ timeouts: { jobTimeout: '1h' } });
    const pod = await run.pod();
    compute.start(pod);
    const { podUid = '' } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    await run.handle.signal(podStateSignal, { uid: podUid, state: 'busy', durationMs: 60_000 });
    const { phases, waitingUntil = '' } = await run.reaches(
      'Busy',
      (status) => status.phase === 'Busy',
    );
    const at = (wanted: string): string | undefined =>
      phases.find(({ phase }) => phase === wanted)?.at;
    // Not before it was idle.
    expect(at('Busy')).toBe(at('Idle'));
    expect(Date.parse(waitingUntil)).toBeLessThanOrEqual(Date.now() + 59 * 60_000);
    compute.startJob(pod);
    compute.endJob(pod);
    compute.end(pod, 0);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
  });

  test('one missed readiness probe is not a job: it is idle again, and replaced if it is lost', async () => {
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    compute.change(pod, { busy: true });
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    compute.change(pod, { busy: false });
    await run.reaches('Idle again', (status) => status.phase === 'Idle');
    compute.vanish(pod);
    await run.reaches(
      'the second runner',
      (status) => status.attempt === 2 && status.pod !== undefined && status.pod !== pod,
    );
    await run.handle.signal('cancel');
    await run.result();
    expectNothingLeft({ compute, ci });
  });

  test('a missed probe whose end is not reported is not a job either: the pod is read before it is stopped', async () => {
    const run = await world.start({ timeouts: { jobTimeout: '500ms' } });
    const pod = await run.pod();
    compute.start(pod);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    // Both at once: half a second is all that there is.
    compute.change(pod, { busy: true });
    compute.muted = true;
    compute.change(pod, { busy: false });
    await run.reaches(
      'Idle again',
      ({ phase, phases }) => phase === 'Idle' && phases.some((each) => each.phase === 'Busy'),
    );
    expect((await run.status()).cancel).toBeUndefined();
    compute.muted = false;
    await run.handle.signal('cancel');
    await run.result();
    expectNothingLeft({ compute, ci });
  });

  test('a job within one workflow task does not cause an idle timeout', async () => {
    const run = await world.start({ ephemeral: false });
    const pod = await run.pod();
    compute.start(pod);
    const { podUid = '' } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    // While no worker runs the signals gather, and the next one takes them in one task.
    await world.suspend();
    await run.handle.signal('podState', { uid: podUid, state: 'busy' });
    await run.handle.signal('podState', { uid: podUid, state: 'idle' });
    await world.resume();
    expect(await run.status()).toMatchObject({ phase: 'Idle' });
    expect((await run.status()).cancel).toBeUndefined();
    await run.handle.signal('cancel');
    await run.result();
  });

  test('an idle runner is checked again before its end: a job that its probe did not show yet can complete', async () => {
    const run = await world.start({ ephemeral: false });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.connect(runnerName);
    const held = Promise.withResolvers<void>();
    ci.removalHeld = held.promise;
    await run.handle.executeUpdate('drain', { args: [{ reason: 'scale-down' }] });
    await until('a DELETE under way', () => ci.count('remove') === 1);
    // GitHub says 204, and the job that it gave away in the same moment begins to show.
    compute.muted = true;
    compute.startJob(pod);
    held.resolve();
    await run.reaches(
      'a second look',
      ({ waitingFor }) => waitingFor?.includes('a job is running') === true,
    );
    expect(compute.deletions).toEqual([]);
    compute.muted = false;
    compute.endJob(pod);
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  test('without events and signals the re-sync of waits leads to the same end', async () => {
    compute.muted = true;
    const run = await world.start({ intervals: { resync: '1s' } });
    const pod = await run.pod();
    compute.start(pod);
    const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
    ci.forget(runnerName);
    compute.change(pod, {
      ended: true,
      exit: { code: 0, oomKilled: false, record: { job: 'completed' } },
    });
    expect(await run.result()).toMatchObject({ outcome: 'succeeded' });
    expectNothingLeft({ compute, ci });
  });

  test('a registration that still waits for its turn has not failed, however long others take', async () => {
    await world.suspend();
    await world.resume([]);
    const run = await world.start({ timeouts: { provisioning: '3s' } });
    const history = async (): Promise<number> =>
      ((await run.handle.fetchHistory()).events ?? []).filter(
        ({ activityTaskTimedOutEventAttributes: out }) => out !== null && out !== undefined,
      ).length;
    await until('two turns missed', async () => (await history()) >= 2);
    expect((await run.status()).phase).toBe('Provisioning');
    await world.suspend();
    await world.resume();
    const pod = await run.pod();
    expect(ci.count('register')).toBe(1);
    compute.start(pod);
    await run.handle.signal('cancel');
    await run.result();
    expectNothingLeft({ compute, ci });
  });

  test('a job that ended without a watching worker is reported by the next one', async () => {
    const run = await world.start({ ephemeral: false });
    const pod = await run.pod();
    compute.start(pod);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    compute.startJob(pod);
    await run.reaches('Busy', (status) => status.phase === 'Busy');
    await world.suspend();
    compute.endJob(pod);
    await world.resume();
    await run.reaches('Idle again', (status) => status.phase === 'Idle');
    await run.handle.signal('cancel');
    await run.result();
    expectNothingLeft({ compute, ci });
  });

  test('a pod that vanished without a watching worker is noticed by the next one', async () => {
    const run = await world.start();
    const pod = await run.pod();
    compute.start(pod);
    await run.reaches('Idle', (status) => status.phase === 'Idle');
    await world.suspend();
    compute.vanish(pod);
    await world.resume();
    await run.reaches(
      'the second runner',
      (status) => status.attempt === 2 && status.pod !== undefined && status.pod !== pod,
    );
    await run.handle.signal('cancel');
    await run.result();
    expectNothingLeft({ compute, ci });
  });
});
