import {
  SWEEP_WORKFLOW,
  runnerEventsSignal,
  setCommandId,
  setWorkflowId,
  type RunnerSetInput,
} from '../../core/contract/index.ts';
import type { MemoryWorld } from '../support/memoryWorld.ts';
import { SetRun } from '../support/setRun.ts';
import { sweepReport } from '../support/sweepReports.ts';
import { until } from '../support/until.ts';

/** A set, a command to one, or a sweep, whose history is recorded. */
export interface SetScenario {
  /** Returns when all that is recorded has ended. */
  readonly play: (world: MemoryWorld, name: string) => Promise<void>;
  /** The workflows that are recorded, by what their files' names have beyond the scenario's. @default the set of that name */
  readonly records?: Readonly<Record<string, (name: string) => string>>;
  /** Of the workflow whose file has the scenario's name. @default 1 */
  readonly runs?: number;
}

/** Short histories: the runners are listed only as the set begins. */
const intervals = { relist: '1h', reroute: '200ms' } as const;
const DEMAND: Partial<RunnerSetInput> = {
  minIdle: 0,
  max: 3,
  scaleDownDelay: '0s',
  queueCheck: '0s',
  intervals,
};
const SET = { '': setWorkflowId };

/** Everything that a set may meet, one scenario each. The name is the history's file name. */
export const SET_SCENARIOS: Readonly<Record<string, SetScenario>> = {
  'set-by-demand': {
    async play(world, name) {
      const set = await SetRun.start(world, { ...DEMAND, name, queueCheck: '30s' });
      const jobs = [await set.queueJob(), await set.queueJob()];
      const { runners } = await set.comesTo({ idle: 2 });
      for (const [index, runner] of runners.entries()) {
        set.startJob(runner);
        await set.tell(set.event('in_progress', jobs[index] ?? 0, runner.runnerName));
      }
      await set.settles({ busy: 2 });
      for (const [index, runner] of runners.entries()) {
        set.endJob(runner);
        await set.tell(set.event('completed', jobs[index] ?? 0, runner.runnerName));
      }
      await set.settles({});
      await set.end();
    },
  },
  'set-rollout': {
    async play(world, name) {
      const set = await SetRun.start(world, {
        name,
        replicas: 1,
        scaleDownDelay: '0s',
        intervals,
        template: { ephemeral: false } as never,
      });
      await set.comesTo({ idle: 1 });
      await set.command(
        {
          command: 'setTemplate',
          template: SetRun.template({ ephemeral: false, labels: ['linux', 'v2'] }),
        },
        'setTemplate',
      );
      const timer = setInterval(() => set.bringUp(), 20);
      await set
        .reaches(
          'one of the new template',
          ({ templateHash, runners }) =>
            runners.length === 1 &&
            runners[0]?.templateHash === templateHash &&
            runners[0].state === 'idle',
        )
        .finally(() => clearInterval(timer));
      await set.end();
    },
    records: { ...SET, '.setTemplate': (name) => setCommandId(name, 'setTemplate') },
  },
  'set-commanded': {
    async play(world, name) {
      const set = await SetRun.start(world, { name, replicas: 1, scaleDownDelay: '0s', intervals });
      const [runner] = (await set.comesTo({ idle: 1 })).runners;
      await set.command({ command: 'pause', reason: 'a look around' }, 'pause');
      await set.command({ command: 'hold', runner: runner?.runnerName ?? '' });
      await set.command({ command: 'resume' });
      await set.command({ command: 'scale', replicas: 0 }, 'scale');
      await set.command({ command: 'hold', runner: runner?.runnerName ?? '', release: true });
      await set.settles({});
      await set.end();
    },
    records: {
      ...SET,
      '.pause': (name) => setCommandId(name, 'pause'),
      '.scale': (name) => setCommandId(name, 'scale'),
    },
  },
  'set-breaker': {
    async play(world, name) {
      const { compute } = world;
      const set = await SetRun.start(world, {
        name,
        replicas: 2,
        intervals,
        template: { timeouts: { registration: '300ms' } } as never,
      });
      const neverOnline = setInterval(() => {
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
      await set
        .reaches('the breaker', ({ blockedReason }) => blockedReason !== undefined)
        .finally(() => clearInterval(neverOnline));
      await set.comesTo({ idle: 2 });
      await set.end();
    },
  },
  'set-scheduled-in-slots': {
    async play(world, name) {
      const claim = { name: 'cache', mountPath: '/cache', claim: 'cache', storage: '1Gi' };
      const set = await SetRun.start(world, {
        name,
        replicas: 0,
        intervals,
        schedules: [{ cron: '* * * * *', duration: '1h', replicas: 2 }],
        template: { volumeClaims: [claim] } as never,
      });
      const [first] = (await set.comesTo({ idle: 2 })).runners;
      world.compute.end(set.podOf(first?.workflowId ?? ''), 1);
      await set.reaches('it to leave', ({ runners }) =>
        runners.every(({ workflowId }) => workflowId !== first?.workflowId),
      );
      await set.comesTo({ idle: 2 });
      await set.end();
    },
  },
  'set-runner-terminated': {
    async play(world, name) {
      // Lists often enough to notice, and seldom enough for one run.
      const set = await SetRun.start(world, { name, replicas: 1, intervals: { relist: '3s' } });
      const [first] = (await set.comesTo({ idle: 1 })).runners;
      await world.world.client.workflow.getHandle(first?.workflowId ?? '').terminate('by hand');
      await set.reaches(
        'another one',
        ({ runners: [one] }) => one !== undefined && one.workflowId !== first?.workflowId,
      );
      await set.comesTo({ idle: 1 });
      await set.end();
    },
  },
  'set-passes-on': {
    async play(world, name) {
      const set = await SetRun.start(world, { ...DEMAND, name, paused: true });
      const other = await SetRun.start(world, { ...DEMAND, name: `${name}-other` });
      await other.reaches('it to run', () => true);
      for (let job = 0; job < 2; job++) await set.queueJob();
      await set.reaches(
        'its jobs to be passed on',
        ({ jobs, rerouted = 0 }) => jobs.queued === 0 && rerouted === 2,
      );
      await other.comesTo({ idle: 2 });
      for (const jobId of [1, 2])
        await set.tell({ ...set.event('completed', jobId), conclusion: 'cancelled' });
      await other.settles({});
      await Promise.all([set.end(), other.end()]);
    },
    records: { ...SET, '.other': (name) => setWorkflowId(`${name}-other`) },
  },
  'set-continued-as-new': {
    runs: 2,
    async play(world, name) {
      const set = await SetRun.start(world, { ...DEMAND, name, minIdle: 1 });
      await set.comesTo({ idle: 1 });
      const { runId } = await set.handle.describe();
      for (let signals = 1; (await set.handle.describe()).runId === runId; signals++) {
        await set.tell(set.event('queued', signals), {
          ...set.event('completed', signals),
          conclusion: 'cancelled',
        });
        await set.handle.signal(runnerEventsSignal, {
          events: [
            {
              kind: 'online',
              workflowId: 'runner-of-nobody',
              runnerName: 'nobody',
              at: Date.now(),
            },
          ],
        });
        await set.status();
        if (signals > 500)
          throw new Error('500 pieces of news, and the set does not continue as new');
      }
      await set.command({ command: 'drain', reason: 'enough' }, 'drain');
      await set.handle.result();
    },
    records: { ...SET, '.drain': (name) => setCommandId(name, 'drain') },
  },
  'set-news-while-away': {
    async play({ world, ...stage }, name) {
      const set = await SetRun.start({ world, ...stage }, { ...DEMAND, name });
      await set.reaches('it to run', () => true);
      await world.suspend();
      for (let piece = 0; piece < 80; piece++)
        await set.handle.signal(runnerEventsSignal, {
          events: [
            {
              kind: 'online',
              workflowId: 'runner-of-nobody',
              runnerName: 'nobody',
              at: Date.now(),
            },
          ],
        });
      await world.resume();
      await set.end();
    },
  },
  'set-cancelled': {
    async play(world, name) {
      // Lists often enough to notice, and seldom enough for one run.
      const set = await SetRun.start(world, { name, replicas: 1, intervals: { relist: '3s' } });
      await set.comesTo({ idle: 1 });
      await set.handle.cancel();
      await until(
        'the set to have ended',
        async () => (await set.handle.describe()).status.name === 'CANCELLED',
      );
    },
  },
  sweep: {
    async play({ world }, name) {
      const mark = {
        kind: 'orphaned_registration',
        key: 'orgs/acme/runner-1#17',
        since: '2026-01-01T00:00:00.000Z',
      } as const;
      world.pretences.push({
        activity: 'sweepPlace',
        answer: () =>
          sweepReport({ counts: { orphaned_pod: { found: 1, repaired: 1 } }, marks: [mark] }),
      });
      await world.client.workflow.execute(SWEEP_WORKFLOW, {
        workflowId: name,
        taskQueue: world.taskQueue,
        args: [{ force: true }, [mark]],
      });
    },
    records: { '': (name) => name },
  },
};
