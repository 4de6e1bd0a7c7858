import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { BarePods } from '../barePods.ts';
import { mapConcurrently } from '../concurrency.ts';
import { baselineCompletion } from '../baseline.ts';
import { jobEnds } from '../jobEnds.ts';
import { RegistrationWatch } from '../registrations.ts';
import { REPOSITORY, countClosed, startRunners, untilClosed, untilPhase } from '../runners.ts';
import { percentile, roundTo } from '../statistics.ts';
import { warmUp } from '../warmUp.ts';

const JOB_MS = 2_000;
const GIVE_UP_MS = 600_000;

export const finish: WorldBenchmark = {
  name: 'finish',
  summary: 'N jobs that end together: job finished → pod and registration gone',
  defaultRunners: 50,
  figures: {
    runners: { unit: 'runners', what: 'runners whose jobs end together' },
    p50Ms: { unit: 'ms', what: 'job finished → pod and registration gone, median' },
    p95Ms: {
      unit: 'ms',
      what: '… p95',
      budget: { kind: 'max', limit: 1_000 },
      compare: 'actions-runner-controller: 2,600 (legacy, tuned) to 15,100 (scale set, default)',
    },
    p99Ms: { unit: 'ms', what: '… p99' },
    perSecond: {
      unit: '/s',
      what: 'runners deleted, from the first finished job to the last deleted runner',
    },
    'floor.p95Ms': {
      unit: 'ms',
      what: 'the same pods, by a bare script on this machine in this run: containers end together → pods gone, p95',
      compare: 'where the budget was set: 600',
    },
    'floor.times': {
      unit: '×',
      what: 'p95Ms, relative to the floor',
      compare: 'the budget where it was set: 1.7; actions-runner-controller there: 4.3 to 25',
    },
  },

  async run(world, runners): Promise<Measured> {
    const { agent, simulator, progress } = world;
    await world.startWorker().ready();
    await warmUp(world);
    const ended = await countClosed(world);
    progress(`starting ${runners} runners`);
    const started = await startRunners(world, runners);
    await untilPhase(world, 'Idle', runners);
    const pods = await BarePods.open(world);
    progress(`queueing ${runners} jobs of ${JOB_MS / 1000} s`);
    await mapConcurrently(
      started,
      16,
      async () => await simulator.queueJob({ repo: REPOSITORY, sleepMs: JOB_MS }),
    );
    const cpu = await world.cpuAccount();
    await agent.until(
      'all jobs are running',
      () => agent.count('jobStarted') >= runners,
      GIVE_UP_MS,
    );
    const registrations = new RegistrationWatch(simulator);
    await agent.until('all pods are gone', () => agent.count('gone') >= runners, GIVE_UP_MS);
    await untilClosed(world, ended + runners);
    const cores = await cpu.close();
    await registrations.stop();
    const ends = [...(await jobEnds(world, registrations, started)).values()];
    const took = ends.map(({ finishedAt, goneAt }) => goneAt - finishedAt);
    progress(`the same ${runners} pods by a bare script`);
    const floorP95Ms = await baselineCompletion(pods, runners);
    const p95Ms = percentile(took, 0.95);
    const firstAt = Math.min(...ends.map(({ finishedAt }) => finishedAt));
    const lastFinishedAt = Math.max(...ends.map(({ finishedAt }) => finishedAt));
    const lastGoneAt = Math.max(...ends.map(({ goneAt }) => goneAt));
    return {
      figures: {
        runners,
        p50Ms: percentile(took, 0.5),
        p95Ms,
        p99Ms: percentile(took, 0.99),
        perSecond: roundTo(runners / ((lastGoneAt - firstAt) / 1_000), 1),
        'floor.p95Ms': floorP95Ms,
        'floor.times': roundTo(p95Ms / floorP95Ms, 1),
      },
      details: {
        cores,
        allFinishedWithinMs: lastFinishedAt - firstAt,
        github: (await simulator.requestCounts()).byStatus,
      },
    };
  },
};
