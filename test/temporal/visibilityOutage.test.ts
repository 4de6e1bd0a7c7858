/** Temporal's visibility is unavailable, on the real server: everything but lists of workflows works. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runnerEventsSignal } from '../../core/contract/index.ts';
import { runnerWorkflowId } from '../../core/domain/setRunnerNames.ts';
import { SetDirectory } from '../../worker/webhook/setDirectory.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { GrpcGate } from '../support/grpcGate.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

const LISTS = ['ListWorkflowExecutions', 'CountWorkflowExecutions'];

await describeWithLab('while visibility is unavailable', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let gate: GrpcGate;
  let world: HoldfastWorld;

  beforeEach(async () => {
    gate = await GrpcGate.open(lab.temporal?.address ?? '');
    [compute, ci] = [new FakeCompute(), new FakeCiServer()];
    world = await holdfastWorld(gate.address, { compute, ciServers: ci });
  });
  afterEach(async () => {
    gate.restore();
    await world.close();
    gate.close();
  });

  test('a set starts runners and executes commands, shows what waits, and drains afterwards', async () => {
    const set = await SetRun.start(
      { world, compute, ci },
      {
        replicas: 3,
        scaleDownDelay: '0s',
        intervals: { relist: '1h' },
      },
    );
    await set.comesTo({ idle: 3 });
    gate.refuse(...LISTS);
    // A runner that the set does not know has it list its runners at once.
    await set.handle.signal(runnerEventsSignal, {
      events: [
        {
          kind: 'online',
          workflowId: runnerWorkflowId(set.name, 'unknown000'),
          runnerName: 'unknown',
          at: Date.now(),
        },
      ],
    });
    // The scale-down needs that list.
    await set.command({ command: 'scale', replicas: 1 });
    const waiting = await set.reaches(
      'the list to be awaited',
      ({ listPendingSince }) => listPendingSince !== undefined,
    );
    expect(waiting.waitingFor).toContain('2 runners are not drained');
    expect(compute.deletions).toEqual([]);

    const answered = await set.command({ command: 'scale', replicas: 5 });
    expect(answered).toMatchObject({ desired: 5 });
    await set.comesTo({ idle: 5 });
    await set.command({ command: 'scale', replicas: 1 });
    expect(await set.status()).toMatchObject({
      desired: 1,
      listPendingSince: waiting.listPendingSince,
    });

    gate.restore();
    await set.settles({ idle: 1 });
    expect((await set.status()).listPendingSince).toBeUndefined();
    await set.end();
    expectNothingLeft({ compute, ci });
  });

  test('a deleted set drains its runners, and ends when a list shows none', async () => {
    const set = await SetRun.start(
      { world, compute, ci },
      { replicas: 2, intervals: { relist: '1h' } },
    );
    await set.comesTo({ idle: 2 });
    gate.refuse(...LISTS);
    await set.command({ command: 'drain', reason: 'test' });
    await until('the runners to leave', () => compute.pods.size === 0);
    expect((await set.handle.describe()).status.name).toBe('RUNNING');
    gate.restore();
    expect(await set.handle.result()).toMatchObject({ runners: [] });
    expectNothingLeft({ compute, ci });
  });

  test('the webhook routes by the last list', async () => {
    const set = await SetRun.start(
      { world, compute, ci },
      { minIdle: 0, max: 2, queueCheck: '0s' },
    );
    let now = Date.now();
    const sets = new SetDirectory({
      client: () => world.client,
      taskQueue: world.taskQueue,
      logger: { warn: () => undefined },
      now: () => now,
    });
    const delivery = { ciServer: 'github', event: set.event('queued', 1) } as const;
    await until('the set in the list', async () => {
      now += 6_000;
      return (await sets.route(delivery, false)).chosen === set.handle.workflowId;
    });
    gate.refuse(...LISTS);
    now += 300_000;
    expect((await sets.route(delivery, false)).chosen).toBe(set.handle.workflowId);
    expect(sets.ageMs).toBe(300_000);
    gate.restore();
    await set.end();
  });
});
