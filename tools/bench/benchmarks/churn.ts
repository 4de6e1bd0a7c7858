import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { BarePods } from '../barePods.ts';
import { mapConcurrently } from '../concurrency.ts';
import { coresOf, cpuOfJobs } from '../cpuAccount.ts';
import { baselineChurn } from '../baseline.ts';
import { churnSet, startFullSet } from '../setChurn.ts';
import { percentile, roundTo } from '../statistics.ts';
import { warmUp } from '../warmUp.ts';

const JOBS_PER_RUNNER = 3;
const JOB_MS = 2_000;

export const churn: WorldBenchmark = {
  name: 'churn',
  summary: 'a set of N runners runs 3 N jobs of 2 s, which are all queued at the start',
  defaultRunners: 50,
  severalWorkers: true,
  figures: {
    jobs: { unit: 'jobs', what: 'jobs of 2 s' },
    jobsPerSecond: {
      unit: '/s',
      what: 'from the queueing of all jobs to the end of the last one',
      compare: 'actions-runner-controller: 3.7 (scale set, default) to 11.5 (legacy, tuned)',
    },
    goneP95Ms: {
      unit: 'ms',
      what: 'job finished → pod and registration gone, p95',
      compare: 'actions-runner-controller: 2,600 to 15,100',
    },
    replacementP95Ms: {
      unit: 'ms',
      what: 'job finished → replacement online, p95',
      compare: 'actions-runner-controller: 3,800 to 17,000',
    },
    cpuMsPerJob: {
      unit: 'ms',
      what: 'CPU of worker and Temporal, without that of idle ones',
    },
    'floor.jobsPerSecond': {
      unit: '/s',
      what: 'the same pods, created by a bare script on this machine in this run',
    },
    'floor.goneP95Ms': { unit: 'ms', what: 'goneP95Ms of the bare script' },
    'floor.replacementP95Ms': { unit: 'ms', what: 'replacementP95Ms of the bare script' },
    'floor.share': {
      unit: '',
      what: 'jobsPerSecond, relative to the floor',
      budget: { kind: 'min', limit: 0.7 },
      compare: 'actions-runner-controller: 0.2 to 0.63',
    },
    goneTimes: {
      unit: '×',
      what: 'goneP95Ms, relative to the floor',
      budget: { kind: 'max', limit: 2 },
    },
    replacementTimes: {
      unit: '×',
      what: 'replacementP95Ms, relative to the floor',
      budget: { kind: 'max', limit: 3 },
    },
    cpuTimes: {
      unit: '×',
      what: 'cpuMsPerJob, relative to the CPU of API server, etcd, controllers and scheduler',
      budget: { kind: 'max', limit: 1.4 },
    },
  },

  async run(world, runners): Promise<Measured> {
    const { simulator, progress } = world;
    const jobs = runners * JOBS_PER_RUNNER;
    await world.startWorkers();
    await warmUp(world);
    progress(`a set of ${runners} runners`);
    const set = await startFullSet(world, runners);
    const idle = await world.idleCpu();
    const pods = await BarePods.open(world);
    progress(`queueing ${jobs} jobs of ${JOB_MS / 1000} s`);
    const queue = async (job: () => Promise<unknown>): Promise<void> =>
      void (await mapConcurrently(Array.from({ length: jobs }), 16, job));
    const { gone, replaced, seconds, spent } = await churnSet(
      world,
      set,
      runners,
      jobs,
      queue,
      JOB_MS,
    );
    progress('the same jobs by a bare script');
    const floor = await baselineChurn(pods, runners, jobs, JOB_MS);
    const jobsPerSecond = roundTo(jobs / seconds, 1);
    const cpu = cpuOfJobs(spent, idle, jobs);
    const goneP95Ms = percentile(gone, 0.95);
    const replacementP95Ms = percentile(replaced, 0.95);
    return {
      figures: {
        jobs,
        jobsPerSecond,
        goneP95Ms,
        replacementP95Ms,
        cpuMsPerJob: cpu.ms,
        'floor.jobsPerSecond': floor.jobsPerSecond,
        'floor.goneP95Ms': floor.goneP95Ms,
        'floor.replacementP95Ms': floor.replacementP95Ms,
        'floor.share': roundTo(jobsPerSecond / floor.jobsPerSecond, 2),
        goneTimes: roundTo(goneP95Ms / floor.goneP95Ms, 2),
        replacementTimes: roundTo(replacementP95Ms / floor.replacementP95Ms, 2),
        cpuTimes: cpu.times,
      },
      details: {
        cores: coresOf(spent),
        idleCores: coresOf(idle),
        runners,
        goneP50Ms: percentile(gone, 0.5),
        replacementP50Ms: percentile(replaced, 0.5),
        github: (await simulator.requestCounts()).byStatus,
      },
    };
  },
};
