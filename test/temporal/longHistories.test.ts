/** Workflows that run for longer than one history. */
import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  JOB_GROUP_WORKFLOW,
  jobEventsSignal,
  jobGroupStatusQuery,
  jobRevisionSignal,
  type JobGroupStatus,
  type JobRevision,
} from '../../core/contract/index.ts';
import { FakeCiServer } from '../support/fakeCiServer.ts';
import { FakeCompute } from '../support/fakeCompute.ts';
import { holdfastWorld, type HoldfastWorld, type RunnerRun } from '../support/holdfastWorld.ts';
import { playsByItself, step } from '../support/jobRun.ts';
import { SetRun } from '../support/setRun.ts';
import { describeIf } from '../support/lab.ts';
import { expectNothingLeft } from '../support/memoryWorld.ts';
import { temporalWithShortHistories } from '../support/shortHistories.ts';
import { until } from '../support/until.ts';

const SUGGESTED_AT = 60;
/** Of one run: the suggestion is acted upon between two waits. */
const MAX_EVENTS = 3 * SUGGESTED_AT;

await describeIf(
  'a workflow of any length',
  async () => await temporalWithShortHistories(SUGGESTED_AT),
  { temporal: true },
  (server) => {
    let compute: FakeCompute;
    let ci: FakeCiServer;
    let world: HoldfastWorld;

    beforeEach(async () => {
      compute = new FakeCompute();
      ci = new FakeCiServer();
      world = await holdfastWorld(server.address, { compute, ciServers: ci });
    });
    afterEach(async () => await world.close());
    afterAll(async () => await server.teardown());

    /** Lets the life go on until it is in a run of its own. */
    async function untilContinued(run: RunnerRun, round: () => Promise<void>): Promise<void> {
      const runId = async (): Promise<string> => (await run.handle.describe()).runId;
      const first = await runId();
      for (let count = 0; (await runId()) === first; count++) {
        await round();
        if ((await run.handle.describe()).historyLength > MAX_EVENTS)
          throw new Error(`${MAX_EVENTS} events in one run, after ${count} rounds`);
      }
    }

    test('a static runner that drains while its busy state flaps continues as new, and still drains', async () => {
      const run = await world.start({ ephemeral: false });
      const pod = await run.pod();
      compute.start(pod);
      const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
      ci.connect(runnerName);
      ci.setBusy(runnerName, true);
      compute.startJob(pod);
      await run.reaches('Busy', (status) => status.phase === 'Busy');
      await run.handle.executeUpdate('drain', { args: [{ reason: 'node maintenance' }] });
      await run.reaches('Draining', (status) => status.phase === 'Draining');
      await untilContinued(run, async () => {
        const asked = ci.count('remove');
        compute.change(pod, { busy: false });
        compute.change(pod, { busy: true });
        await run.reaches('another removal', () => ci.count('remove') > asked);
      });
      expect(await run.status()).toMatchObject({
        phase: 'Draining',
        cancel: { mode: 'drain', reason: 'node maintenance' },
      });
      ci.setBusy(runnerName, false);
      compute.endJob(pod);
      expect(await run.result()).toMatchObject({
        outcome: 'succeeded',
        attempt: 1,
        message: expect.stringContaining('node maintenance'),
      });
      expectNothingLeft({ compute, ci });
    });

    test('a runner whose input is not valid any more at continue-as-new drains, with the reason', async () => {
      const run = await world.start({ ephemeral: false, name: 'kept' });
      const pod = await run.pod();
      compute.start(pod);
      const { runnerName } = await run.reaches('Idle', (status) => status.phase === 'Idle');
      ci.connect(runnerName);
      ci.setBusy(runnerName, true);
      compute.startJob(pod);
      await run.reaches('Busy', (status) => status.phase === 'Busy');
      compute.unsound.push('the pod: not allowed by "privileged"');
      await untilContinued(run, async () => {
        for (const [busy, phase] of [
          [false, 'Idle'],
          [true, 'Busy'],
        ] as const) {
          compute.change(pod, { busy });
          await run.reaches(phase, (status) => [phase, 'Draining'].includes(status.phase));
        }
      });
      const { cancel } = await run.reaches('Draining', (status) => status.phase === 'Draining');
      expect(cancel).toMatchObject({
        mode: 'drain',
        reason: expect.stringContaining('not allowed by "privileged"'),
      });
      expect(compute.deletions).toEqual([]);
      ci.setBusy(runnerName, false);
      compute.endJob(pod);
      expect(await run.result()).toMatchObject({
        outcome: 'succeeded',
        runnerName,
        message: expect.stringContaining('not allowed by "privileged"'),
      });
      expectNothingLeft({ compute, ci });
    });

    test('a set whose declaration is not valid any more at continue-as-new pauses, with the reason', async () => {
      const set = await SetRun.start({ world, compute, ci }, { replicas: 1 });
      await set.comesTo({ idle: 1 });
      const { templateHash } = await set.status();
      compute.unsound.push('the pod: not allowed by "privileged"');
      const runId = async (): Promise<string> => (await set.handle.describe()).runId;
      const first = await runId();
      for (let round = 0; (await runId()) === first && round < MAX_EVENTS; round++) {
        await set.handle.signal(jobEventsSignal, { events: [] });
        await set.status();
      }
      const { blockedReason } = await set.reaches(
        'the pause',
        (status) => status.blockedReason !== undefined,
      );
      expect(blockedReason).toContain('not allowed by "privileged"');
      expect(await set.status()).toMatchObject({
        templateHash,
        desired: 1,
        runners: [{ state: 'idle', templateHash }],
      });
      compute.unsound.splice(0);
      await set.end();
      expectNothingLeft({ compute, ci });
    });

    test('an ephemeral runner that repeatedly loses its pod continues as new', async () => {
      const run = await world.start();
      let attempt = 1;
      await untilContinued(run, async () => {
        const { pod = '' } = await run.reaches(
          'a pod',
          (status) => status.attempt === attempt && status.pod !== undefined,
        );
        compute.start(pod);
        await run.reaches(
          'Idle',
          (status) => status.attempt === attempt && status.phase === 'Idle',
        );
        compute.vanish(pod);
        attempt++;
      });
      await run.handle.signal('cancel');
      expect(await run.result()).toMatchObject({ outcome: 'aborted', cause: 'cancelled' });
      expectNothingLeft({ compute, ci });
    });

    test('a group of runs continues as new, and continues counting its versions', async () => {
      playsByItself(compute, 'end');
      const handle = world.client.workflow.getHandle('job-group:web:acme/web:main:pr-1');
      const runId = async (): Promise<string | undefined> =>
        await handle.describe().then(
          (group) => group.runId,
          () => undefined,
        );
      const at = '2026-11-22T10:00:00Z';
      const commit = '6dcb09b5b57875f334f61aebed695e2e4193db5e';
      const job = { name: 'web', repository: 'acme/web', test: [step('unit')] };
      const again = {
        workflowId: handle.workflowId,
        taskQueue: world.taskQueue,
        args: [],
        signal: jobRevisionSignal,
        signalArgs: [{ commit, at, job, rerun: true }] as [JobRevision],
      };
      await world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, again);
      const first = await runId();
      let last: JobGroupStatus | undefined;
      for (let generation = 1; (await runId()) === first; generation++) {
        await until(
          `the end of run ${generation}`,
          async () =>
            (last = await handle.query(jobGroupStatusQuery)).outcome !== undefined &&
            last.runNumber === generation,
          () => JSON.stringify(last),
        );
        if ((await runId()) === first)
          await world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, again);
      }
      const { runNumber = 0 } = last ?? {};
      await world.client.workflow.signalWithStart(JOB_GROUP_WORKFLOW, again);
      await until(
        'the next run to be over',
        async () =>
          (last = await handle.query(jobGroupStatusQuery)).outcome === 'succeeded' &&
          last.runNumber === runNumber + 1,
        () => JSON.stringify(last),
      );
    });
  },
);
