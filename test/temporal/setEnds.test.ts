/** How a set ended, as the controller of RunnerSet resources finds it on a real server. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { SET_DELETION_MEMO } from '../../core/contract/index.ts';
import { SetWorkflows } from '../../worker/controller/setWorkflows.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { memoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

await describeWithLab('the end of a set', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;
  let sets: SetWorkflows;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
    sets = new SetWorkflows({ client: () => world.client, taskQueue: world.taskQueue });
  });
  afterEach(async () => await world.close());

  const start = async (): Promise<SetRun> =>
    await SetRun.start(
      { world, compute, ci },
      { replicas: 1, template: { ephemeral: false } as never },
    );

  test('that was terminated unexpectedly is a failure with its author and reason', async () => {
    const set = await start();
    await set.comesTo({ idle: 1 });
    await set.handle.terminate('by mistake');
    expect(await sets.find(set.name)).toMatchObject({
      state: 'ended',
      failed: true,
      message: expect.stringContaining('by mistake') as unknown,
    });
  });

  test('that was deleted is not a failure, also if its workflow was terminated with runners left', async () => {
    const set = await start();
    const { runners } = await set.comesTo({ idle: 1 });
    const [busy] = runners;
    if (busy === undefined) throw new Error('no runner');
    set.startJob(busy);
    await set.command({ command: 'drain', reason: 'no longer needed' });
    await until('the record', async () => {
      const { memo } = await set.handle.describe();
      return JSON.stringify(memo?.[SET_DELETION_MEMO]) === '{"reason":"no longer needed"}';
    });
    await set.handle.terminate('at once');
    expect(await sets.find(set.name)).toMatchObject({ state: 'ended', failed: false });
  });

  test('that was cancelled is not a failure', async () => {
    const set = await start();
    await set.comesTo({ idle: 1 });
    await set.handle.cancel();
    await set.handle.result().catch(() => undefined);
    expect(await sets.find(set.name)).toMatchObject({ state: 'ended', failed: false });
  });
});
