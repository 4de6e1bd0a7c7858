/**
 * Replacement of suspected runners. One kind is a static runner that was busy for longer in total
 * than a job may take, according to its pod alone: processes of an earlier job can cause such
 * reports. The other kind is a runner that another system reports as unresponsive.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import {
  replaceIdleSignal,
  statusQuery,
  type RunnerPhase,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld } from '../support/holdfastWorld.ts';
import { describeWithLab } from '../support/lab.ts';
import { expectNothingLeft } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { until } from '../support/until.ts';

await describeWithLab(
  'a static runner that was busy for longer than a job may take',
  { temporal: true },
  (lab) => {
    let compute: FakeCompute;
    let ci: FakeCiServer;
    let world: HoldfastWorld;

    beforeEach(async () => {
      [compute, ci] = [new FakeCompute(), new FakeCiServer()];
      world = await holdfastWorld(lab.temporal?.address ?? '', {
        compute,
        ciServers: ci,
        timeoutPolicy: { default: { jobTimeoutCap: '15s' } },
      });
    });
    afterEach(async () => await world.close());

    /** Makes an idle runner busy and idle again, until it does not return to Idle. */
    async function flap(handle: WorkflowHandle, pod: string): Promise<void> {
      const phase = async (): Promise<RunnerPhase> =>
        ((await handle.query(statusQuery)) as RunnerStatus).phase;
      do {
        compute.startJob(pod);
        await until('the runner to be busy', async () => (await phase()) === 'Busy');
        // A worker reports sixty changes immediately, and further ones a minute apart.
        const enough = Date.now() + 1_500;
        await until('a part of its busy time to pass', () => Date.now() >= enough);
        compute.endJob(pod);
        await until('the runner not to be busy', async () => (await phase()) !== 'Busy');
      } while ((await phase()) === 'Idle');
    }

    test('is replaced by another runner of its set', async () => {
      const set = await SetRun.start(
        { world, compute, ci },
        { replicas: 1, template: { ephemeral: false } },
      );
      const [suspected] = (await set.comesTo({ idle: 1 })).runners;
      if (suspected === undefined) throw new Error('no runner');
      const handle = world.client.workflow.getHandle(suspected.workflowId);
      await flap(handle, set.podOf(suspected.workflowId));
      expect(await handle.result()).toMatchObject({
        outcome: 'succeeded',
        message: expect.stringMatching(/it was busy for \d+s in all/),
      });
      const [another] = (await set.comesTo({ idle: 1 })).runners;
      expect(another?.workflowId).not.toBe(suspected.workflowId);
      await set.end();
    });

    test('without a set is replaced by another attempt, with a pod of its own', async () => {
      const run = await world.start({ ephemeral: false });
      const pod = await run.pod();
      compute.start(pod);
      const { runnerName } = await run.reaches('Idle', ({ phase }) => phase === 'Idle');
      ci.connect(runnerName);
      await flap(run.handle, pod);
      await run.reaches('another runner', ({ attempt }) => attempt === 2);
      expect(compute.pods.has(pod)).toBe(false);
      expect([...ci.registrations.values()].map(({ name }) => name)).not.toContain(runnerName);
      compute.start(await run.pod());
      ci.connect((await run.reaches('Idle again', ({ phase }) => phase === 'Idle')).runnerName);
      await run.handle.executeUpdate('drain', { args: [{ reason: 'over' }] });
      expect(await run.result()).toMatchObject({
        outcome: 'succeeded',
        attempt: 2,
        replacements: [{ runnerName, cause: 'run_timeout' }],
      });
      expectNothingLeft({ compute, ci });
    });
  },
);

await describeWithLab(
  'a runner that another system has reported as unresponsive',
  { temporal: true },
  (lab) => {
    let compute: FakeCompute;
    let ci: FakeCiServer;
    let world: HoldfastWorld;

    beforeEach(async () => {
      [compute, ci] = [new FakeCompute(), new FakeCiServer()];
      world = await holdfastWorld(lab.temporal?.address ?? '', { compute, ciServers: ci });
    });
    afterEach(async () => await world.close());

    async function idle() {
      const run = await world.start({});
      const pod = await run.pod();
      compute.start(pod);
      const { runnerName } = await run.reaches('Idle', ({ phase }) => phase === 'Idle');
      ci.connect(runnerName);
      return { run, pod, runnerName };
    }

    test('is replaced by another attempt, and the reason is visible', async () => {
      const { run, pod, runnerName } = await idle();
      await run.handle.signal(replaceIdleSignal, { runnerName, reason: 'unresponsive' });
      await run.reaches('another runner', ({ attempt }) => attempt === 2);
      expect(compute.pods.has(pod)).toBe(false);
      expect([...ci.registrations.values()].map(({ name }) => name)).not.toContain(runnerName);
      const next = await run.pod();
      compute.start(next);
      ci.connect((await run.reaches('Idle again', ({ phase }) => phase === 'Idle')).runnerName);
      await run.handle.executeUpdate('drain', { args: [{ reason: 'over' }] });
      expect(await run.result()).toMatchObject({
        outcome: 'succeeded',
        attempt: 2,
        replacements: [{ runnerName, cause: 'agent_lost' }],
      });
      expectNothingLeft({ compute, ci });
    });

    test('is not replaced if the signal names another runner, or if it has a job by then', async () => {
      const { run, pod, runnerName } = await idle();
      await run.handle.signal(replaceIdleSignal, {
        runnerName: `${runnerName}-r2`,
        reason: 'a later attempt',
      });
      compute.startJob(pod);
      await run.reaches('Busy', ({ phase }) => phase === 'Busy');
      await run.handle.signal(replaceIdleSignal, { runnerName, reason: 'unresponsive' });
      await run.reaches('Busy', ({ phase }) => phase === 'Busy');
      compute.endJob(pod);
      ci.forget(runnerName);
      compute.end(pod, 0);
      expect(await run.result()).toMatchObject({
        outcome: 'succeeded',
        attempt: 1,
        replacements: [],
      });
    });
  },
);
