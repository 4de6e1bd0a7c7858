import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { BarePods } from '../barePods.ts';
import { coresOf, cpuOfJobs } from '../cpuAccount.ts';
import { baselineScaleup } from '../baseline.ts';
import { untilPhase } from '../runners.ts';
import { startSet } from '../sets.ts';
import { percentile, roundTo } from '../statistics.ts';
import { warmUp } from '../warmUp.ts';

/** Response time of GitHub (ms), approximately. */
const CI_SERVER_LATENCY_MS = 100;
const GIVE_UP_MS = 600_000;

export const scaleup: WorldBenchmark = {
  name: 'scaleup',
  summary:
    'a set of N runners from its start until all are online; the CI server responds in 100 ms',
  defaultRunners: 200,
  severalWorkers: true,
  figures: {
    runners: { unit: 'runners', what: 'runners of the set' },
    perSecond: {
      unit: '/s',
      what: 'runners online, from the start of the set to the last runner online',
      compare: 'actions-runner-controller: 2.5 (scale set) to 28 (legacy, tuned)',
    },
    createdP95Ms: { unit: 'ms', what: "the set's start → pod created, p95" },
    onlineP95Ms: { unit: 'ms', what: "the set's start → runner online at the CI server, p95" },
    cpuMsPerRunner: {
      unit: 'ms',
      what: 'CPU of worker and Temporal, without that of idle ones',
    },
    'floor.perSecond': {
      unit: '/s',
      what: 'the same pods, created by a bare script on this machine in this run',
    },
    'floor.share': {
      unit: '',
      what: 'perSecond, relative to the floor',
      budget: { kind: 'min', limit: 0.3 },
      compare: 'actions-runner-controller: 0.02 to 0.18',
    },
  },

  async run(world, runners): Promise<Measured> {
    const { agent, simulator, progress } = world;
    await world.startWorkers();
    await warmUp(world);
    await simulator.addFault({ kind: 'latency', ms: CI_SERVER_LATENCY_MS });
    const idle = await world.idleCpu();
    const account = await world.cpuAccount();
    progress(`a set of ${runners} runners`);
    const startedAt = Date.now();
    await startSet(world, 'scaled', { replicas: runners });
    await agent.until(
      `${runners} runners are online`,
      () => agent.count('online') >= runners,
      GIVE_UP_MS,
    );
    const spent = await account.spent();
    const since = (step: 'created' | 'running' | 'online'): number[] =>
      [...agent.all().values()].map((steps) => (steps[step] ?? Number.NaN) - startedAt);
    const allOnlineMs = Math.max(...since('online'));
    progress('all runners are online; waiting until all workflows have the event');
    await untilPhase(world, 'Idle', runners);
    const pods = await BarePods.open(world);
    progress(`the same ${runners} pods by a bare script`);
    const floorPerSecond = await baselineScaleup(pods, runners);
    const perSecond = roundTo(runners / (allOnlineMs / 1_000), 1);
    const cpu = cpuOfJobs(spent, idle, runners);
    return {
      figures: {
        runners,
        perSecond,
        createdP95Ms: percentile(since('created'), 0.95),
        onlineP95Ms: percentile(since('online'), 0.95),
        cpuMsPerRunner: cpu.ms,
        'floor.perSecond': floorPerSecond,
        'floor.share': roundTo(perSecond / floorPerSecond, 2),
      },
      details: {
        cores: coresOf(spent),
        idleCores: coresOf(idle),
        cpuTimes: cpu.times,
        allOnlineMs,
        allKnownIdleMs: Date.now() - startedAt,
        createdP50Ms: percentile(since('created'), 0.5),
        runningP50Ms: percentile(since('running'), 0.5),
        onlineP50Ms: percentile(since('online'), 0.5),
      },
    };
  },
};
