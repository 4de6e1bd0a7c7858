import { ComputeError } from '../../activities/ports/computeError.ts';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { chainOf, faultsOf, withTaskAfterLocalActivity } from '../support/replays.ts';
import type { History } from '../replay/historyJson.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';
import type { StartRunnersInput } from '../../core/activities/index.ts';
import { SET_TASK_TIMEOUT_MS } from '../../core/domain/setPriority.ts';
import {
  runnerEventsSignal,
  type RunnerSetInput,
  type SetRunnerStatus,
} from '../../core/contract/index.ts';

await describeWithLab('a set of runners', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;
  let neverOnline: NodeJS.Timeout | undefined;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => {
    clearInterval(neverOnline);
    await world.close();
  });

  const start = async (input: Partial<RunnerSetInput>): Promise<SetRun> =>
    await SetRun.start({ world, compute, ci }, input);

  /** Ends the set; nothing of its runners may be left, and no job may have been killed. */
  async function endsClean(set: SetRun): Promise<void> {
    const last = await set.end();
    expect(last.runners).toEqual([]);
    expectNothingLeft({ compute, ci });
  }

  const idle = (runner: SetRunnerStatus): boolean => runner.state === 'idle';

  test('static runners: a scale-up is immediate, a scale-down affects idle ones only, and ended ones are replaced', async () => {
    const set = await start({
      replicas: 2,
      template: { ephemeral: false } as never,
      scaleDownDelay: '0s',
    });
    const first = await set.comesTo({ idle: 2 });
    await set.command({ command: 'scale', replicas: 4 });
    const { runners } = await set.comesTo({ idle: 4 });
    const [busy] = first.runners;
    if (busy === undefined) throw new Error('no runner');
    set.startJob(busy);
    await set.tell(set.event('in_progress', 1, busy.runnerName));
    await set.settles({ idle: 3, busy: 1 });
    await set.command({ command: 'scale', replicas: 1 });
    // The busy one stays although it is the oldest.
    const left = await set.settles({ busy: 1 });
    expect(left.runners[0]?.workflowId).toBe(busy.workflowId);
    expect(compute.deletions).toHaveLength(3);
    set.endJob(busy, false);
    await set.tell(set.event('completed', 1, busy.runnerName));
    await set.settles({ idle: 1 });
    compute.end(set.podOf(busy.workflowId), 1);
    const after = await set.reaches(
      'another runner',
      ({ runners: [one] }) => one !== undefined && one.workflowId !== busy.workflowId,
    );
    expect(runners.map(({ workflowId }) => workflowId)).not.toContain(after.runners[0]?.workflowId);
    await set.comesTo({ idle: 1 });
    await endsClean(set);
  });

  test('demand: scales up immediately, and down to the idle runners after the delay', async () => {
    const set = await start({ minIdle: 1, max: 4, scaleDownDelay: '1h', queueCheck: '0s' });
    await set.comesTo({ idle: 1 });
    for (let i = 0; i < 5; i++) await set.queueJob();
    // One beyond the bound: the fourth and the fifth job ask for nothing more.
    const up = await set.reaches(
      '4 wanted for 5 jobs',
      ({ desired, runners, jobs }) => desired === 4 && runners.length === 4 && jobs.queued === 5,
    );
    expect(up.jobs).toMatchObject({ running: 0 });
    await set.comesTo({ idle: 4 });
    for (let jobId = 1; jobId <= 5; jobId++)
      await set.tell({ ...set.event('completed', jobId), conclusion: 'cancelled' });
    const waiting = await set.reaches('1 wanted', ({ desired }) => desired === 1);
    expect(waiting.waitingFor).toMatch(/scale-down of 3 runners: not until 20/);
    expect(compute.deletions).toEqual([]);
    // However slow the machine is, the hour is not over: a shorter delay is what lets them go.
    await set.settles({ idle: 4 });
    const declaration = await set.handle.query<RunnerSetInput>('declaration');
    await set.command({ command: 'apply', declaration: { ...declaration, scaleDownDelay: '1s' } });
    await set.settles({ idle: 1 });
    expect(compute.deletions).toHaveLength(3);
    await endsClean(set);
  });

  test('a held runner is not scaled down', async () => {
    const set = await start({ replicas: 3, scaleDownDelay: '0s' });
    const { runners } = await set.comesTo({ idle: 3 });
    const oldest = runners.toSorted((a, b) => (a.startedAt < b.startedAt ? -1 : 1))[0];
    await set.command({ command: 'hold', runner: oldest?.runnerName ?? '' });
    await set.command({ command: 'scale', replicas: 0 });
    const held = await set.settles({ idle: 1 });
    expect(held).toMatchObject({
      runners: [{ workflowId: oldest?.workflowId, onHold: true }],
      holds: [oldest?.runnerName],
    });
    await expect(set.command({ command: 'hold', runner: 'nobody' })).rejects.toMatchObject({
      cause: { message: 'runner: this set has no "nobody"' },
    });
    await set.command({ command: 'hold', runner: oldest?.workflowId ?? '', release: true });
    await set.settles({});
    await endsClean(set);
  });

  test('an outdated or invalid signal does not end a wait of the set', async () => {
    const set = await start({ replicas: 2, scaleDownDelay: '1h' });
    await set.comesTo({ idle: 2 });
    await set.command({ command: 'scale', replicas: 1 });
    const inTenYears = Date.now() + 3_650 * 24 * 3_600_000;
    for (const at of [inTenYears, 0, -inTenYears])
      await set.handle.signal(runnerEventsSignal, {
        events: [{ kind: 'online', workflowId: 'runner-of-nobody', runnerName: 'nobody', at }],
      });
    await set.handle.signal(runnerEventsSignal.name, 'what is this');
    await set.handle.signal(runnerEventsSignal.name);
    // By the time that it has read its runners anew it has taken all of that in.
    const { waitingFor = '' } = await set.reaches(
      'a runner that is kept',
      ({ runners, desired, waitingFor: why }) =>
        desired === 1 && runners.length === 2 && why?.includes('scale-down of 1 runners') === true,
    );
    expect(Date.parse(/not until (\S+Z)/.exec(waitingFor)?.[1] ?? '')).toBeLessThan(
      Date.now() + 2 * 3_600_000,
    );
    expect((await set.settles({ idle: 2 })).runners).toHaveLength(2);
    await endsClean(set);
  });

  test('a rollout: new runners first, idle old ones end, busy ones complete their job, and then the old template is removed', async () => {
    const set = await start({ replicas: 3, template: { ephemeral: false } as never });
    const { templateHash, runners } = await set.comesTo({ idle: 3 });
    const [busy] = runners;
    if (busy === undefined) throw new Error('no runner');
    set.startJob(busy);
    await set.tell(set.event('in_progress', 1, busy.runnerName));
    await set.settles({ idle: 2, busy: 1 });
    await set.command({
      command: 'setTemplate',
      template: SetRun.template({ ephemeral: false, labels: ['linux', 'v2'] }),
    });
    const old = (status: { runners: SetRunnerStatus[] }): SetRunnerStatus[] =>
      status.runners.filter((one) => one.templateHash === templateHash);
    // The new one is not up yet: nobody leaves.
    const begun = await set.reaches('a new runner', (status) => status.runners.length === 4);
    expect(old(begun)).toHaveLength(3);
    const timer = setInterval(() => set.bringUp(), 20);
    const waiting = await set.reaches(
      'only the busy one left',
      (status) => old(status).length === 1 && status.runners.filter(idle).length >= 2,
    );
    expect(old(waiting)[0]?.workflowId).toBe(busy.workflowId);
    expect(waiting.waitingFor).toContain('rollout: 1 runners of an earlier template are left');
    set.endJob(busy, false);
    await set.settles({ idle: 3 });
    clearInterval(timer);
    const done = await set.status();
    expect(old(done)).toEqual([]);
    expect(done.waitingFor ?? '').not.toContain('rollout');
    expect(compute.created.at(-1)).toBeDefined();
    await endsClean(set);
  });

  test('pause prevents starts and drains; resume ends it', async () => {
    const set = await start({ replicas: 1, paused: true });
    expect((await set.reaches('a list', ({ desired }) => desired === 1)).blockedReason).toBe(
      'paused',
    );
    await set.command({ command: 'pause', reason: 'the cluster is being upgraded' });
    expect((await set.status()).blockedReason).toBe('paused: the cluster is being upgraded');
    expect(compute.created).toEqual([]);
    await set.command({ command: 'resume' });
    await set.comesTo({ idle: 1 });
    await endsClean(set);
  });

  test('two consecutive runners that never start open the circuit breaker; then one at a time is tried', async () => {
    const set = await start({
      replicas: 2,
      template: { timeouts: { registration: '300ms' } } as never,
    });
    neverOnline = setInterval(() => {
      for (const pod of compute.pods.values())
        if (pod.startedAt === undefined)
          compute.change(pod.name, {
            scheduled: true,
            node: 'n',
            startedAt: new Date().toISOString(),
            online: false,
            busy: false,
          });
    }, 20);
    const open = await set.reaches(
      'the breaker',
      ({ blockedReason }) => blockedReason !== undefined,
    );
    expect(open.blockedReason).toMatch(/^never_registered ×\d+$/);
    const worse = await set.reaches(
      'a probe to fail',
      ({ blockedReason = '' }) =>
        Number(/×(\d+)/.exec(blockedReason)?.[1]) >
        Number(/×(\d+)/.exec(open.blockedReason ?? '')?.[1]),
    );
    expect(worse.runners.filter(({ state }) => state === 'starting').length).toBeLessThanOrEqual(1);
    clearInterval(neverOnline);
    const healed = await set.comesTo({ idle: 2 });
    expect(healed.blockedReason).toBeUndefined();
    await endsClean(set);
  });

  test('pods that the API server rejects: its error is in the status until a runner is online', async () => {
    compute.refusals.set(
      'createPod',
      () => new ComputeError('invalid', 'no PriorityClass with name urgent was found'),
    );
    const set = await start({ replicas: 1 });
    const blocked = await set.reaches('the rejections', ({ blockedReason = '' }) =>
      /^pod_rejected ×([2-9]|\d\d+)$/.test(blockedReason),
    );
    expect(blocked.lastFailure).toMatchObject({
      runner: expect.stringMatching(/^runner-/),
      cause: 'pod_rejected',
      message: expect.stringContaining('no PriorityClass with name urgent was found'),
    });
    compute.refusals.clear();
    const healed = await set.comesTo({ idle: 1 });
    expect(healed.lastFailure).toBeUndefined();
    await endsClean(set);
  });

  test('a run that signals make long during an activity continues as new right after it', async () => {
    const set = await start({ replicas: 0, intervals: { relist: '1h' } });
    await set.reaches('it to have begun', ({ desired }) => desired === 0);
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    world.pretences.push({
      activity: 'startRunners',
      answer: async ({ runners }: StartRunnersInput) => {
        await enough;
        return {
          at: Date.now(),
          rejected: runners.map(({ workflowId }) => workflowId),
          message: 'not yet',
        };
      },
    });
    // So many that they are not started within the workflow task.
    await set.command({ command: 'scale', replicas: 6 });
    await set.reaches('a start', ({ runners }) => runners.length === 6);
    const { runId } = await set.handle.describe();
    const news = {
      events: [
        { kind: 'online', workflowId: 'runner-of-nobody', runnerName: 'nobody', at: Date.now() },
      ],
    };
    for (let batch = 0; batch < 6; batch++)
      await Promise.all(
        Array.from(
          { length: 50 },
          async () => await set.handle.signal(runnerEventsSignal.name, news),
        ),
      );
    await set.status();
    expect((await set.handle.describe()).runId).toBe(runId);
    resolve();
    await until('another run', async () => (await set.handle.describe()).runId !== runId);
    await set.comesTo({ idle: 6 });
    // Whoever has started it: what a busy set has to read anew, when it is not let continue at once, may take longer than Temporal's ten seconds.
    const { events } = await set.handle.fetchHistory();
    expect(
      Number(events?.[0]?.workflowExecutionStartedEventAttributes?.workflowTaskTimeout?.seconds),
    ).toBe(SET_TASK_TIMEOUT_MS / 1_000);
    await endsClean(set);
  });

  test('a start that fails within the workflow task is retried by a separate activity', async () => {
    world.pretences.push({
      activity: 'startRunners',
      answer: async () => await Promise.reject(new Error('Temporal is away')),
    });
    const set = await start({ replicas: 1 });
    await set.comesTo({ idle: 1 });
    const { events = [] } = await set.handle.fetchHistory();
    const scheduled = events?.map(
      ({ activityTaskScheduledEventAttributes: activity }) => activity?.activityType?.name,
    );
    expect(scheduled?.filter((name) => name === 'startRunners')).toHaveLength(1);
    await endsClean(set);
  });

  test('a history whose first workflow task has only the check of the input is supported', async () => {
    const set = await start({ replicas: 1 });
    await set.comesTo({ idle: 1 });
    const [first] = await chainOf(world.client, set.handle.workflowId);
    const slow = withTaskAfterLocalActivity(first as History);
    expect(await faultsOf([{ workflowId: set.handle.workflowId, history: slow }])).toEqual([]);
    await endsClean(set);
  });

  test('an invalid declaration is rejected with every invalid field; the set continues unchanged', async () => {
    const set = await start({ replicas: 1 });
    await set.comesTo({ idle: 1 });
    const bad = {
      name: set.name,
      replicas: 1,
      max: 3,
      template: { organization: 'acme', nonsense: true },
      typo: 1,
    };
    const apply = async (declaration: object): Promise<unknown> =>
      await set.command({ command: 'apply', declaration: declaration as RunnerSetInput });
    await expect(apply(bad)).rejects.toMatchObject({
      cause: {
        type: 'InvalidInput',
        message: expect.stringContaining('typo is not a known field'),
      },
    });
    await expect(apply({ ...bad, typo: undefined })).rejects.toMatchObject({
      cause: {
        message: expect.stringMatching(
          /max and replicas exclude each other.*template.nonsense is not a known field/,
        ),
      },
    });
    await expect(
      apply({ name: `${set.name}-b`, replicas: 2, template: SetRun.template() }),
    ).rejects.toMatchObject({
      cause: {
        type: 'InvalidInput',
        message: `Invalid input: declaration.name: this set is called ${set.name}`,
      },
    });
    // Both bounds are right by themselves.
    await expect(set.command({ command: 'scale', replicas: 1, max: 3 })).rejects.toMatchObject({
      cause: { type: 'InvalidInput', message: expect.stringContaining('exclude each other') },
    });
    expect(await set.handle.query('declaration')).toMatchObject({ name: set.name, replicas: 1 });
    await endsClean(set);
  });

  test('a schedule overrides the size while it is active', async () => {
    const set = await start({
      replicas: 0,
      schedules: [{ cron: '* * * * *', duration: '1h', replicas: 1 }],
    });
    const status = await set.comesTo({ idle: 1 });
    expect(status).toMatchObject({
      desired: 1,
      min: 1,
      max: 1,
      waitingFor: expect.stringMatching(/schedule 1 \(\* \* \* \* \*\) holds until 20/),
    });
    await endsClean(set);
  });

  test('volumes that outlive their runners: each slot has one, and its next runner gets the same', async () => {
    const claim = { name: 'cache', mountPath: '/cache', claim: 'cache', storage: '1Gi' };
    // A list that found the runner draining would have its successor get the next slot.
    const intervals = { relist: '1h' };
    const template = { volumeClaims: [claim] } as never;
    const set = await start({ replicas: 2, template, intervals });
    const { runners } = await set.comesTo({ idle: 2 });
    expect(new Set(runners.map(({ slot }) => slot))).toEqual(new Set([0, 1]));
    const claims = (): (string | undefined)[] =>
      compute.created.map(({ volumeClaims = [] }) => volumeClaims[0]?.claim);
    expect(new Set(claims())).toEqual(new Set(['cache-0', 'cache-1']));
    const first = runners.find(({ slot }) => slot === 0)?.workflowId ?? '';
    compute.end(set.podOf(first), 1);
    await set.reaches('another runner in the slot', (status) =>
      status.runners.some(({ slot, workflowId }) => slot === 0 && workflowId !== first),
    );
    await set.comesTo({ idle: 2 });
    expect(claims().at(-1)).toBe('cache-0');
    await endsClean(set);
  });

  test('a set that was lost and created again takes over the runners of its template, despite runners that end in the meantime', async () => {
    const set = await start({ replicas: 2 });
    const { runners } = await set.comesTo({ idle: 2 });
    await set.handle.terminate('lost');
    const [gone, kept] = runners;
    compute.end(set.podOf(gone?.workflowId ?? ''), 0);
    await expect(
      world.client.workflow.getHandle(gone?.workflowId ?? '').result(),
    ).resolves.toMatchObject({ outcome: 'errored', cause: 'agent_lost' });
    const again = await SetRun.start({ world, compute, ci }, { name: set.name, replicas: 1 });
    const status = await again.reaches(
      'the runner that is left',
      (now) => now.runners.length === 1,
    );
    expect(status.runners[0]).toMatchObject({
      workflowId: kept?.workflowId,
      state: 'idle',
      templateHash: status.templateHash,
    });
    await endsClean(again);
  });

  test('a set with an invalid input fails immediately', async () => {
    const set = await start({
      replicas: 1,
      schedules: [{ cron: 'whenever', duration: '1h', replicas: 2 }],
    });
    await expect(set.handle.result()).rejects.toMatchObject({
      cause: {
        message: expect.stringContaining('schedules.0.cron "whenever" is not a cron expression'),
      },
    });
  });
});
