import { setTimeout as delay } from 'node:timers/promises';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { BarePods } from '../barePods.ts';
import { coresOf, cpuOfJobs } from '../cpuAccount.ts';
import { baselineSteady } from '../baseline.ts';
import { churnSet, startFullSet } from '../setChurn.ts';
import { percentile, roundTo } from '../statistics.ts';
import { warmUp } from '../warmUp.ts';

const EVERY_MS = 500;
const SECONDS = 60;
const JOBS = (SECONDS * 1_000) / EVERY_MS;
const JOB_MS = 2_000;
/** Number of jobs of the bare script, enough for a p95. */
const FLOOR_JOBS = 40;

export const steady: WorldBenchmark = {
  name: 'steady',
  summary:
    'a set of N runners, and two jobs of 2 s a second for a minute, so that no process waits for CPU',
  defaultRunners: 10,
  severalWorkers: true,
  figures: {
    goneP95Ms: { unit: 'ms', what: 'job finished → pod and registration gone, p95' },
    replacementP95Ms: { unit: 'ms', what: 'job finished → replacement online, p95' },
    onlineP95Ms: { unit: 'ms', what: 'pod of a replacement created → replacement online, p95' },
    cpuMsPerJob: {
      unit: 'ms',
      what: 'CPU of worker and Temporal, without that of idle ones',
    },
    'floor.goneP95Ms': {
      unit: 'ms',
      what: 'the same pods, created by a bare script on this machine in this run',
    },
    'floor.replacementP95Ms': { unit: 'ms', what: 'replacementP95Ms of the bare script' },
    goneTimes: {
      unit: '×',
      what: 'goneP95Ms, relative to the floor',
      budget: { kind: 'max', limit: 1.5, note: 'or 100 ms' },
    },
    replacementTimes: {
      unit: '×',
      what: 'replacementP95Ms, relative to the floor',
      budget: { kind: 'max', limit: 1.5 },
    },
  },

  async run(world, runners): Promise<Measured> {
    const { progress } = world;
    await world.startWorkers();
    await warmUp(world);
    progress(`a set of ${runners} runners`);
    const set = await startFullSet(world, runners);
    const idle = await world.idleCpu();
    const pods = await BarePods.open(world);
    progress(`${JOBS} jobs of ${JOB_MS / 1_000} s, one in ${EVERY_MS / 1_000} s`);
    const queue = async (job: () => Promise<unknown>): Promise<void> => {
      const startedAt = performance.now();
      for (let index = 0; index < JOBS; index++) {
        await delay(Math.max(0, startedAt + index * EVERY_MS - performance.now()));
        await job();
      }
    };
    const { gone, replaced, online, spent } = await churnSet(
      world,
      set,
      runners,
      JOBS,
      queue,
      JOB_MS,
    );
    progress('the same jobs by a bare script');
    const floor = await baselineSteady(pods, runners, FLOOR_JOBS, EVERY_MS);
    const goneP95Ms = percentile(gone, 0.95);
    const replacementP95Ms = percentile(replaced, 0.95);
    return {
      figures: {
        goneP95Ms,
        replacementP95Ms,
        onlineP95Ms: percentile(online, 0.95),
        cpuMsPerJob: cpuOfJobs(spent, idle, JOBS).ms,
        'floor.goneP95Ms': floor.goneP95Ms,
        'floor.replacementP95Ms': floor.replacementP95Ms,
        goneTimes: roundTo(goneP95Ms / floor.goneP95Ms, 2),
        replacementTimes: roundTo(replacementP95Ms / floor.replacementP95Ms, 2),
      },
      details: {
        cores: coresOf(spent),
        idleCores: coresOf(idle),
        runners,
        jobs: JOBS,
        goneP50Ms: percentile(gone, 0.5),
        replacementP50Ms: percentile(replaced, 0.5),
        cpuTimes: cpuOfJobs(spent, idle, JOBS).times,
      },
    };
  },
};
