import { expect } from '@jest/globals';
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { up } from '../../../tools/lab/lab.ts';
import {
  RUNNER_SET_WORKFLOW,
  SET_COMMAND_WORKFLOW,
  cancelSignal,
  setCommandId,
  setWorkflowId,
  type RunnerResult,
} from '../../../core/contract/index.ts';
import type { ClusterRun } from '../../support/clusterRun.ts';
import { cleanEnd } from '../../support/demoRunners.ts';
import { states } from '../../support/jobRun.ts';
import { describeIf } from '../../support/lab.ts';
import { restartsLabFolder } from '../../support/labFolder.ts';
import { unreplayable } from '../../support/replays.ts';
import { notifySet } from '../../support/setCommands.ts';
import { together, type Scenario } from '../../support/together.ts';
import { until } from '../../support/until.ts';
import { partaking } from './partaking.ts';
import { RestartWorld } from './restartWorld.ts';

type Life = Scenario<RestartWorld>;

/** For how many seconds of its own a job must go on while a server is down. */
const HELD_DOWN_SECONDS = 3;
const SUCCEEDED = { outcome: 'succeeded', attempt: 1, replacements: [] };
const CANCELLED = { outcome: 'aborted', cause: 'cancelled', attempt: 1, replacements: [] };

/** The verdict as told, and never a second pod or a second registration. */
async function endsAs(run: ClusterRun, verdict: object): Promise<RunnerResult> {
  const result = await run.ends();
  expect(result).toMatchObject(verdict);
  expect({ pods: run.podsEver().length, registered: run.registeredEver() }).toEqual({
    pods: 1,
    registered: 1,
  });
  return result;
}

/** Its container has ended, and the API server has told so to those who watch. */
async function podEnds(run: ClusterRun): Promise<void> {
  const phases = async (): Promise<(string | undefined)[]> =>
    (await run.pods()).map(({ status }) => status?.phase);
  await until(
    `${run.key}'s pod to have ended`,
    async () => (await phases()).join() === 'Succeeded',
  );
}

type Ending = 'whileTemporalIsDown' | 'whileApiServerIsDown' | 'afterwards';

const ephemeral =
  (name: string, ending: Ending): Life =>
  async (world) => {
    const { run, job, finish } = await world.busy(name);
    const holdDown = async (): Promise<void> => await run.goesOn(job, HELD_DOWN_SECONDS);
    const whileDown: Partial<Record<Ending, () => Promise<void>>> = {
      whileApiServerIsDown: finish,
      afterwards: holdDown,
    };
    await world.goThrough({
      whileTemporalIsDown:
        ending === 'whileTemporalIsDown'
          ? async () => await finish().then(async () => await podEnds(run))
          : holdDown,
      between: async () =>
        void (ending === 'whileTemporalIsDown' && (await endsAs(run, SUCCEEDED))),
      whileApiServerIsDown: whileDown[ending] ?? (() => undefined),
    });
    if (ending === 'afterwards') await finish();
    await endsAs(run, SUCCEEDED);
    run.expectUnharmed(job);
  };

const drainedBusy =
  (name: string, ending: Ending): Life =>
  async (world) => {
    const { run, job, finish } = await world.busy(name, { ephemeral: false });
    await run.drain('an upgrade');
    await world.goThrough({
      beforeTemporalDies: async () =>
        void (await run.reaches('refused (422)', () => run.requests('DELETE', 422).length > 0)),
      whileTemporalIsDown: ending === 'whileTemporalIsDown' ? finish : () => undefined,
      between: async () =>
        void (ending === 'whileTemporalIsDown' && (await endsAs(run, SUCCEEDED))),
      whileApiServerIsDown: ending === 'whileApiServerIsDown' ? finish : () => undefined,
    });
    if (ending === 'afterwards') await finish();
    expect(await endsAs(run, SUCCEEDED)).toMatchObject({
      message: expect.stringContaining('an upgrade'),
    });
    run.expectUnharmed(job);
  };

const idle =
  (name: string): Life =>
  async (world) => {
    const run = await world.world.start(name, { ephemeral: false });
    await run.listens();
    await world.goThrough({});
    await run.drain();
    await endsAs(run, SUCCEEDED);
  };

const lives: Record<string, Life> = {
  'ephemeral, its job ends while Temporal is down': ephemeral('ends-1', 'whileTemporalIsDown'),
  'another one, its job ends while Temporal is down': ephemeral('ends-2', 'whileTemporalIsDown'),
  'ephemeral, its job ends while the API server is down': ephemeral(
    'ends-3',
    'whileApiServerIsDown',
  ),
  'another one, its job ends while the API server is down': ephemeral(
    'ends-4',
    'whileApiServerIsDown',
  ),
  'ephemeral, its job outlasts both': ephemeral('outlasts-1', 'afterwards'),
  'another one, its job outlasts both': ephemeral('outlasts-2', 'afterwards'),

  'static, drained while busy, its job ends while Temporal is down': drainedBusy(
    'drained-1',
    'whileTemporalIsDown',
  ),
  'static, drained while busy, its job ends while the API server is down': drainedBusy(
    'drained-2',
    'whileApiServerIsDown',
  ),
  'static, drained while busy, its job outlasts both': drainedBusy('drained-3', 'afterwards'),
  'static, drained between the two, its job ends while the API server is down': async (world) => {
    const { run, job, finish } = await world.busy('drained-4', { ephemeral: false });
    await world.goThrough({ between: async () => await run.drain(), whileApiServerIsDown: finish });
    await endsAs(run, SUCCEEDED);
    run.expectUnharmed(job);
  },

  'cancelled (stop) just before Temporal dies': async (world) => {
    const { run, job } = await world.busy('cancelled-1');
    await world.goThrough({
      beforeTemporalDies: async () => await run.handle.signal(cancelSignal, { mode: 'stop' }),
      between: async () => void (await endsAs(run, CANCELLED)),
    });
    run.expectInterrupted(job);
  },
  'cancelled (stop) while the API server is down': async (world) => {
    const { run, job } = await world.busy('cancelled-2');
    await world.goThrough({
      whileApiServerIsDown: async () => await run.handle.signal(cancelSignal, { mode: 'stop' }),
    });
    await endsAs(run, CANCELLED);
    run.expectInterrupted(job);
  },
  'cancelled (force) while the API server is down': async (world) => {
    const { run, job } = await world.busy('cancelled-3');
    await world.goThrough({
      whileApiServerIsDown: async () => await run.handle.signal(cancelSignal, { mode: 'force' }),
    });
    await endsAs(run, CANCELLED);
    run.expectForced(job);
  },
  'cancelled (drain) while the API server is down: its job may finish': async (world) => {
    const { run, job, finish } = await world.busy('cancelled-4');
    await world.goThrough({
      whileApiServerIsDown: async () => await run.handle.signal(cancelSignal, { mode: 'drain' }),
    });
    await finish();
    await endsAs(run, CANCELLED);
    run.expectUnharmed(job);
  },
  'plainly cancelled just before Temporal dies': async (world) => {
    const { run, job } = await world.busy('cancelled-5');
    await world.goThrough({
      beforeTemporalDies: async () => void (await run.handle.cancel()),
      between: async () => {
        const error: unknown = await run.result().catch((reason: unknown) => reason);
        expect(
          error instanceof WorkflowFailedError && error.cause instanceof CancelledFailure,
        ).toBe(true);
      },
    });
    run.expectInterrupted(job);
    expect(run.podsEver()).toHaveLength(1);
  },

  'static, idle all the time, drained at last': idle('idle-1'),
  'ephemeral, idle all the time, then given a job': async (world) => {
    const run = await world.world.start('idle-2');
    await run.listens();
    await world.goThrough({});
    const { job, finish } = world.queueJob(run);
    await finish();
    await endsAs(run, SUCCEEDED);
    run.expectUnharmed(job);
  },
  'static, does a whole job while Temporal is down and another while the API server is down':
    async (world) => {
      const run = await world.world.start('idle-3', { ephemeral: false });
      await run.listens();
      const jobs: { id: number }[] = [];
      const aWholeJob = async (): Promise<void> => {
        const { job, finish } = world.queueJob(run);
        jobs.push(job);
        await finish();
      };
      await world.goThrough({ whileTemporalIsDown: aWholeJob, whileApiServerIsDown: aWholeJob });
      await run.drain();
      await endsAs(run, SUCCEEDED);
      expect(jobs).toHaveLength(2);
      for (const job of jobs) run.expectUnharmed(job);
    },

  'a job of several steps in its post, a step of which ends while Temporal is down: the rest once, in order':
    async (world) => {
      const { job, pod, finish } = await world.jobInPost('post-1');
      await world.goThrough({
        whileTemporalIsDown: async () => {
          finish();
          await world.world.namespace.waitForPod(
            pod,
            ({ status }) => status?.phase === 'Succeeded',
          );
        },
        between: async () => {
          expect(states(await job.result())).toEqual([
            'unit failed',
            'gather succeeded',
            'clean succeeded',
          ]);
          expect(job.pods()).toEqual(['test-1', 'post-1', 'post-2']);
        },
      });
    },
  'a job of several steps in its post, a step of which outlasts both': async (world) => {
    const { job, finish } = await world.jobInPost('post-2');
    await world.goThrough({});
    finish();
    expect(states(await job.result())).toEqual([
      'unit failed',
      'gather succeeded',
      'clean succeeded',
    ]);
    expect(job.pods()).toEqual(['test-1', 'post-1', 'post-2']);
  },

  'a set that is told one thing just before Temporal dies, and another when it is back': async (
    world,
  ) => {
    const { client, taskQueue, namespace } = world.world;
    const name = `told-${namespace.name}`;
    const handle = await client.workflow.start(RUNNER_SET_WORKFLOW, {
      workflowId: setWorkflowId(name),
      taskQueue,
      args: [{ name, replicas: 0, template: { organization: 'acme', labels: [name] } }],
    });
    const pause = {
      workflowId: setCommandId(name, 'pause'),
      taskQueue,
      args: [{ set: name, command: 'pause', reason: 'an upgrade' }],
    };
    await world.goThrough({
      beforeTemporalDies: async () =>
        void (await client.workflow.start(SET_COMMAND_WORKFLOW, pause)),
      between: async () => {
        expect(await client.workflow.getHandle(pause.workflowId).result()).toMatchObject({
          blockedReason: 'paused: an upgrade',
        });
        expect(
          (await notifySet(client, name, { command: 'resume' })).blockedReason,
        ).toBeUndefined();
      },
    });
    await notifySet(client, name, { command: 'drain' });
    expect(await handle.result()).toMatchObject({ runners: [] });
    expect(await unreplayable(client, [handle.workflowId])).toEqual([]);
  },

  'started just before Temporal dies': async (world) => {
    let started: ClusterRun | undefined;
    await world.goThrough({
      beforeTemporalDies: async () => void (started = await world.world.start('started-1')),
    });
    const { job, finish } = world.queueJob(started!);
    await finish();
    await endsAs(started!, SUCCEEDED);
    started!.expectUnharmed(job);
  },
  'started while the API server is down': async (world) => {
    let started: ClusterRun | undefined;
    await world.goThrough({
      whileApiServerIsDown: async () => {
        const run = (started = await world.world.start('started-2'));
        await run.reaches('registered, without a pod', () => run.registeredEver() >= 1);
      },
    });
    const { job, finish } = world.queueJob(started!);
    await finish();
    const result = await started!.ends();
    expect(result).toMatchObject(SUCCEEDED);
    started!.expectUnharmed(job);
    expect(started!.podsEver()).toHaveLength(1);
    // Each try without a cluster to store it in makes a registration of the same name, and removes the one before.
    expect(started!.registeredEver()).toBe(started!.requests('DELETE', 204).length + 1);
  },
};

await describeIf(
  'Temporal and the API server restart while many runners run',
  async () => await up({ stateDir: restartsLabFolder(), nodes: 'kubelet' }),
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    const afterwards = Object.fromEntries(
      Object.entries(cleanEnd).map(([name, end]): [string, Life] => [
        name,
        async ({ world }) => await end(world),
      ]),
    );
    together(
      async () => await RestartWorld.open(lab, Object.keys(lives).length),
      partaking(lives),
      { afterwards, timeoutMs: 480_000 },
    );
  },
);
