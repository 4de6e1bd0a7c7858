/** Runner versions that the CI server will refuse, on a real Temporal server. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runnerVersionSignal } from '../../core/contract/index.ts';
import { imageVersion } from '../../core/domain/runnerVersion.ts';
import { RunnerVersionMonitor } from '../../worker/process/runnerVersionMonitor.ts';
import type { FakeCiServer } from '../support/fakeCiServer.ts';
import type { FakeCompute } from '../support/fakeCompute.ts';
import type { HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft, memoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

const DAY_MS = 24 * 3_600_000;
const OLD = 'ghcr.io/actions/actions-runner:2.330.0';

await describeWithLab('a runner version that GitHub will reject', { temporal: true }, (lab) => {
  let compute: FakeCompute;
  let ci: FakeCiServer;
  let world: HoldfastWorld;

  beforeEach(async () => {
    ({ compute, ci, world } = await memoryWorld(lab));
  });
  afterEach(async () => await world.close());

  const start = async (image: string): Promise<SetRun> =>
    await SetRun.start({ world, compute, ci }, { replicas: 1, template: { image } as never });

  test('is reported once to each set that uses it, and logged a week ahead', async () => {
    const sets = [await start(OLD), await start(OLD), await start('runner:latest')];
    for (const set of sets) await set.comesTo({ idle: 1 });
    const jobsUntil = Date.now() + 3 * DAY_MS;
    const asked: string[] = [];
    ci.versionDeadline = async (_scope, version) => {
      asked.push(version);
      return await Promise.resolve({ jobsUntil });
    };
    const warnings: unknown[] = [];
    const monitor = new RunnerVersionMonitor({
      client: () => world.client,
      sets: async () => await Promise.resolve(sets.map(({ handle }) => handle.workflowId)),
      ciServers: ci,
      defaultImage: undefined,
      logger: { warn: (fields: object) => void warnings.push(fields) },
    });
    expect(await monitor.check()).toBe(true);
    expect(asked).toEqual([imageVersion(OLD)]);
    const [first, , latest] = sets as [SetRun, SetRun, SetRun];
    const { runnerVersion } = await first.reaches(
      'its version',
      (status) => status.runnerVersion !== undefined,
    );
    expect(runnerVersion).toEqual({
      version: '2.330.0',
      jobsUntil: new Date(jobsUntil).toISOString(),
    });
    expect((await latest.status()).runnerVersion).toBeUndefined();
    // The sets are asked at the same time.
    expect(new Set(warnings)).toEqual(
      new Set(
        sets
          .slice(0, 2)
          .map(({ name }): unknown => expect.objectContaining({ set: name, version: '2.330.0' })),
      ),
    );

    // The same answer is no news, and another template is another version.
    await until(
      'the second set to know',
      async () => (await sets[1]?.status())?.runnerVersion !== undefined,
    );
    expect(await monitor.check()).toBe(true);
    const { events } = await first.handle.fetchHistory();
    const reports = events?.filter(
      ({ workflowExecutionSignaledEventAttributes: signal }) =>
        signal?.signalName === runnerVersionSignal.name,
    );
    expect(reports).toHaveLength(1);
    await first.command({
      command: 'setTemplate',
      template: SetRun.template({ image: 'runner:latest' } as never),
    });
    expect((await first.status()).runnerVersion).toBeUndefined();
    await Promise.all(sets.map(async (set) => await set.end()));
    expectNothingLeft({ compute, ci });
  });

  test('that is rejected does not stop a set: it continues as soon as the image has another', async () => {
    compute.born = { started: true, ended: true, exit: { code: 7, oomKilled: false } } as never;
    const set = await start(OLD);
    const { blockedReason } = await set.reaches(
      'the refusal',
      (status) => status.blockedReason !== undefined,
    );
    expect(blockedReason).toMatch(/^runner_deprecated/);
    // The tag has a newer image.
    compute.born = {};
    await set.comesTo({ idle: 1 });
    expect((await set.status()).blockedReason).toBeUndefined();
    await set.end();
    expectNothingLeft({ compute, ci });
  });
});
