import { expect, test } from '@jest/globals';
import { DeferredCompletions } from '../../../activities/watcher/deferredCompletions.ts';
import { startWatcher } from '../../../activities/watcher/startWatcher.ts';
import type { Logger } from '../../../activities/ports/logger.ts';
import type { WaitCompleter } from '../../../activities/ports/waitCompleter.ts';
import { FakeCompute } from '../../support/fakeCompute.ts';
import { until } from '../../support/until.ts';
import type { PodStateEvent } from '../../../core/contract/index.ts';
import type { ServedLocation } from '../../../core/domain/location.ts';
import type { PodView, SupervisorConfig } from '../../../core/domain/pod.ts';

const quiet = { info: () => undefined, warn: () => undefined };

class RecordingCompleter implements WaitCompleter {
  readonly offers: string[] = [];
  readonly states: string[] = [];
  readonly answered: unknown[] = [];
  readonly readAgain: string[] = [];
  readonly changes: (string | undefined)[] = [];
  /** Existing waits, by activity id. */
  readonly waits = new Map<string, string>();
  readonly answers = new Map<string, PodView>();

  async complete(workflowId: string, activityId: string, result: PodView): Promise<boolean> {
    this.offers.push(activityId);
    if (this.waits.get(activityId) !== workflowId) return false;
    this.waits.delete(activityId);
    this.answers.set(activityId, result);
    return true;
  }

  async completeDeferred(_task: unknown, result: unknown): Promise<boolean> {
    this.answered.push(result);
    return true;
  }

  async signalPodState(
    _workflowId: string,
    { state }: PodStateEvent,
    changeId?: string,
  ): Promise<void> {
    this.states.push(state);
    this.changes.push(changeId);
  }

  async requestRecheck(_workflowId: string, activityId: string): Promise<void> {
    this.readAgain.push(activityId);
  }

  async *pendingWaits(
    _place: ServedLocation,
    except: ReadonlySet<string>,
  ): AsyncGenerator<{ workflowId: string; activityId: string }> {
    for (const [activityId, workflowId] of this.waits)
      if (!except.has(workflowId)) yield { workflowId, activityId };
  }
}

const ONE_JOB: SupervisorConfig = {
  runnerKind: 'github',
  ephemeral: true,
  onTerm: 'stop',
  drainTimeoutMs: 0,
  signalTimeoutMs: 10_000,
  cleanupTimeoutMs: 5_000,
  signalTarget: 'group',
  startupTimeoutMs: 600_000,
};
const DONE = {
  ended: true,
  exit: { code: 0, oomKilled: false, record: { job: 'completed' as const } },
};

async function world(
  againMs: readonly number[] = [],
  logger: Logger = quiet,
  deferredCompletions?: DeferredCompletions,
) {
  const compute = new FakeCompute();
  const completer = new RecordingCompleter();
  const watcher = await startWatcher({
    compute,
    completer,
    logger,
    againMs,
    ...(deferredCompletions === undefined ? {} : { deferredCompletions }),
  });
  const { name } = await compute.createPod({
    identity: { workflowId: 'runner-1', firstRunId: 'f', attempt: 1 },
    labels: {},
    terminationGracePeriodSeconds: 30,
    supervision: ONE_JOB,
  });
  return { compute, completer, watcher, name };
}

test('completes a wait once, when its condition becomes true', async () => {
  const { compute, completer, watcher, name } = await world();
  completer.waits.set(`online/${name}`, 'runner-1').set(`ended/${name}`, 'runner-1');
  compute.start(name);
  await watcher.idle();
  expect(completer.offers).toEqual([`online/${name}`]);
  compute.end(name, 3);
  compute.change(name, { reason: 'Completed' });
  await watcher.idle();
  expect(completer.offers).toEqual([`online/${name}`, `ended/${name}`]);
  expect(completer.answers.get(`ended/${name}`)).toMatchObject({ exit: { code: 3 } });
  await watcher.stop();
});

test('a deferred response replaces that of a wait, and at the stop has the known state', async () => {
  const compute = new FakeCompute();
  const completer = new RecordingCompleter();
  const deferredCompletions = new DeferredCompletions();
  const watcher = await startWatcher({
    compute,
    completer,
    deferredCompletions,
    logger: quiet,
    againMs: [],
  });
  const [soon, never] = await Promise.all(
    [1, 2].map(
      async (attempt) =>
        await compute.createPod({
          identity: { workflowId: 'runner-1', firstRunId: 'f', attempt },
          labels: {},
          terminationGracePeriodSeconds: 30,
        }),
    ),
  );
  for (const pod of [soon as PodView, never as PodView])
    expect(
      deferredCompletions.defer(
        deferredCompletions.addWaiter(pod, 'online'),
        { taskToken: new Uint8Array(), activityId: '1', workflowId: pod.workflowId },
        (seen) => [pod.name, seen?.online],
        60_000,
      ),
    ).toBe(true);
  compute.start(soon?.name ?? '');
  await watcher.idle();
  expect(completer.answered).toEqual([[soon?.name, true]]);
  expect(completer.offers).toEqual([]);
  await watcher.stop();
  expect(completer.answered).toEqual([
    [soon?.name, true],
    [never?.name, undefined],
  ]);
});

test('offers a result again that was earlier than its wait', async () => {
  const { compute, completer, watcher, name } = await world([20, 20]);
  compute.start(name);
  await until('the first offer', () => completer.offers.length >= 1);
  completer.waits.set(`online/${name}`, 'runner-1');
  await until('the answer', () => completer.answers.has(`online/${name}`));
  await watcher.stop();
});

test('deletes a pod after its job as soon as its workflow knows the end, and not before', async () => {
  const { compute, completer, watcher, name } = await world([20, 20]);
  completer.complete = async (_workflowId, activityId) => {
    expect(compute.deletions).toEqual([]);
    return completer.waits.delete(activityId);
  };
  compute.start(name);
  compute.change(name, DONE);
  await watcher.idle();
  expect(compute.deletions).toEqual([]);
  completer.waits.set(`ended/${name}`, 'runner-1');
  await until('the pod is gone', () => !compute.pods.has(name));
  expect(compute.deletions).toMatchObject([{ name, gracePeriodSeconds: undefined }]);
  await watcher.stop();
});

test.each<[string, Partial<PodView>, string[]]>([
  [
    'a pod with a completed job is not offered as gone, because its workflow’s own tear-down deletes it',
    DONE,
    ['ended'],
  ],
  [
    'all other pods are offered as gone',
    { ended: true, exit: { code: 3, oomKilled: false } },
    ['ended', 'deleted'],
  ],
])('%s', async (_what, end, offered) => {
  const { compute, completer, watcher, name } = await world([], quiet, new DeferredCompletions());
  completer.waits.set(`online/${name}`, 'runner-1').set(`ended/${name}`, 'runner-1');
  compute.start(name);
  compute.change(name, end);
  await watcher.idle();
  if (compute.pods.has(name)) compute.vanish(name);
  await watcher.idle();
  expect(completer.offers.slice(1)).toEqual(offered.map((condition) => `${condition}/${name}`));
  await watcher.stop();
});

test.each([true, undefined])(
  'an unreported busy state (%s) is reported with the end of the runner',
  async (busy) => {
    const { compute, completer, watcher, name } = await world([], quiet, new DeferredCompletions());
    completer.waits.set(`ended/${name}`, 'runner-1');
    compute.start(name);
    if (busy === true) compute.startJob(name);
    compute.end(name, 0);
    await watcher.idle();
    expect([completer.answers.get(`ended/${name}`)?.endedBusy, completer.states]).toEqual([
      busy,
      [],
    ]);
    await watcher.stop();
  },
);

test('leaves a pod without a completed job to its workflow', async () => {
  const { compute, completer, watcher, name } = await world();
  completer.waits.set(`ended/${name}`, 'runner-1');
  compute.start(name);
  compute.end(name, 1);
  await watcher.idle();
  expect(completer.answers.has(`ended/${name}`)).toBe(true);
  expect(compute.deletions).toEqual([]);
  await watcher.stop();
});

test('leaves a pod that it cannot delete to its workflow', async () => {
  const warnings: string[] = [];
  const { compute, completer, watcher, name } = await world([], {
    ...quiet,
    warn: (_fields, message) => warnings.push(message),
  });
  completer.waits.set(`ended/${name}`, 'runner-1');
  compute.start(name);
  compute.failures.push({ method: 'deletePod', error: new Error('forbidden') });
  compute.change(name, DONE);
  await watcher.idle();
  expect(completer.answers.has(`ended/${name}`)).toBe(true);
  expect(warnings).toEqual([expect.stringContaining('failed to delete the pod')]);
  await watcher.stop();
});

test('stops offering after the last time, and at the stop', async () => {
  const { compute, completer, watcher, name } = await world([1]);
  compute.start(name);
  await until('both offers', () => completer.offers.length === 2);
  await watcher.idle();
  expect(completer.offers).toHaveLength(2);
  await watcher.stop();
});

test('reports idle and busy as changes, not as the initial state', async () => {
  const { compute, completer, watcher, name } = await world();
  compute.start(name);
  compute.startJob(name);
  compute.change(name, { busy: false });
  await watcher.idle();
  expect(completer.states).toEqual(['busy', 'idle']);
  await watcher.stop();
});

test('one of two watchers offers immediately, the other when it is needed', async () => {
  const compute = new FakeCompute();
  const completer = new RecordingCompleter();
  const start = async () =>
    await startWatcher({
      compute,
      completer,
      logger: quiet,
      againMs: [],
      othersFirstMs: 1_000_000,
    });
  const watchers = await Promise.all([start(), start()]);
  const runner = async (number: number): Promise<string> => {
    const workflowId = `runner-${number}`;
    const { name } = await compute.createPod({
      identity: { workflowId, firstRunId: 'f', attempt: 1 },
      labels: {},
      terminationGracePeriodSeconds: 30,
      supervision: ONE_JOB,
    });
    completer.waits.set(`ended/${name}`, workflowId);
    return name;
  };
  for (let number = 0; number < 20; number++) {
    compute.end(await runner(number), 1);
    for (const watcher of watchers) await watcher.idle();
  }
  expect(completer.answers.size).toBe(20);
  // The slower watcher must first detect that.
  expect(completer.offers.filter((offer) => offer.startsWith('ended/'))).toHaveLength(20 + 3);
  for (const watcher of watchers) await watcher.stop();
});

test('a watcher that waits for others takes over if none offers', async () => {
  const compute = new FakeCompute();
  const completer = new RecordingCompleter();
  const watcher = await startWatcher({
    compute,
    completer,
    logger: quiet,
    againMs: [],
    othersFirstMs: 20,
  });
  const end = async (number: number, waited: boolean): Promise<string> => {
    const workflowId = `runner-${number}`;
    const { name } = await compute.createPod({
      identity: { workflowId, firstRunId: 'f', attempt: 1 },
      labels: {},
      terminationGracePeriodSeconds: 30,
      supervision: ONE_JOB,
    });
    if (waited) completer.waits.set(`ended/${name}`, workflowId);
    compute.end(name, 1);
    await watcher.idle();
    return name;
  };
  for (let number = 0; number < 3; number++) await end(number, false);
  const orphan = await end(3, true);
  await until('the offer that was kept back', () => completer.answers.has(`ended/${orphan}`));
  await watcher.idle();
  const next = await end(4, true);
  expect(completer.answers.has(`ended/${next}`)).toBe(true);
  await watcher.stop();
});

test('a watcher that waited for others offers again, for a wait that started in the meantime', async () => {
  const compute = new FakeCompute();
  const completer = new RecordingCompleter();
  const watcher = await startWatcher({
    compute,
    completer,
    logger: quiet,
    againMs: [10, 20],
    othersFirstMs: 10,
  });
  const offersOf = (name: string): number =>
    completer.offers.filter((offer) => offer === `ended/${name}`).length;
  const end = async (number: number, offers: number): Promise<string> => {
    const { name } = await compute.createPod({
      identity: { workflowId: `runner-${number}`, firstRunId: 'f', attempt: 1 },
      labels: {},
      terminationGracePeriodSeconds: 30,
      supervision: ONE_JOB,
    });
    compute.end(name, 1);
    await until('its offers', () => offersOf(name) >= offers);
    await watcher.idle();
    return name;
  };
  // It is slower, and its last offer of each is over.
  for (let number = 0; number < 3; number++) await end(number, 3);
  const orphan = await end(3, 1);
  expect(offersOf(orphan)).toBe(1);
  completer.waits.set(`ended/${orphan}`, 'runner-3');
  await until('the second offer', () => completer.answers.has(`ended/${orphan}`));
  await watcher.stop();
});

test('two watchers report each change with one ID, and the next with another: the server keeps one of each', async () => {
  const { compute, completer, watcher, name } = await world();
  const second = await startWatcher({ compute, completer, logger: quiet, againMs: [] });
  compute.start(name);
  const states: [boolean, string][] = [
    [true, '12:00:01'],
    [false, '12:00:02'],
    [true, '12:00:03'],
    [false, '12:00:04'],
  ];
  for (const [busy, at] of states)
    compute.change(name, { busy, readinessChangedAt: `2026-03-01T${at}Z` });
  await Promise.all([watcher.idle(), second.idle()]);
  const times = new Map<string | undefined, number>();
  for (const change of completer.changes) times.set(change, (times.get(change) ?? 0) + 1);
  expect([...times.values()]).toEqual([2, 2, 2, 2]);
  expect(times.has(undefined)).toBe(false);
  await Promise.all([watcher.stop(), second.stop()]);
});

test('reports them in order, even if one takes long', async () => {
  const { compute, completer, watcher, name } = await world();
  let arrive = (): void => undefined;
  const onItsWay = new Promise<void>((resolve) => (arrive = resolve));
  const notify = completer.signalPodState.bind(completer);
  completer.signalPodState = async (workflowId, state) => {
    if (state.state === 'busy') await onItsWay;
    await notify(workflowId, state);
  };
  compute.start(name);
  compute.startJob(name);
  compute.change(name, { busy: false });
  // Everything that can be reported by now has been reported.
  await new Promise((resolve) => setImmediate(resolve));
  arrive();
  await watcher.idle();
  expect(completer.states).toEqual(['busy', 'idle']);
  await watcher.stop();
});

test('a report that is repeated keeps its place before the next', async () => {
  const { compute, completer, watcher, name } = await world();
  const notify = completer.signalPodState.bind(completer);
  let failures = 1;
  completer.signalPodState = async (workflowId, state) => {
    if (failures-- > 0) throw new Error('no answer');
    await notify(workflowId, state);
  };
  compute.start(name);
  compute.startJob(name);
  compute.change(name, { busy: false });
  await watcher.idle();
  expect(completer.states).toEqual(['busy', 'idle']);
  await watcher.stop();
});

test('a new watcher makes waits of pods that it does not find read again, and completes none of them', async () => {
  const { compute, completer, watcher, name } = await world();
  await watcher.stop();
  completer.waits.set(`ended/${name}`, 'runner-1');
  compute.vanish(name);
  const next = await startWatcher({ compute, completer, logger: quiet, againMs: [] });
  await next.idle();
  expect({ readAgain: completer.readAgain, offers: completer.offers }).toEqual({
    readAgain: [`ended/${name}`],
    offers: [],
  });
  await next.stop();
});

test('a persistent image problem completes the wait by itself', async () => {
  const { compute, completer, watcher, name } = await world();
  completer.waits.set(`online/${name}`, 'runner-1');
  const since = new Date(Date.now() - 29_950).toISOString();
  compute.change(name, {
    scheduled: true,
    problem: { kind: 'image_pull', message: 'ErrImagePull', since },
  });
  expect(completer.offers).toEqual([]);
  await until('the answer', () => completer.answers.has(`online/${name}`));
  await watcher.stop();
});
