import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { BarePods } from '../barePods.ts';
import { mapConcurrently } from '../concurrency.ts';
import { floorOfChurn } from '../floor.ts';
import { jobEnds } from '../jobEnds.ts';
import { RegistrationWatch } from '../registrations.ts';
import { REPOSITORY, startRunner, untilPhase, type StartedRunner } from '../runners.ts';
import { percentile, round } from '../statistics.ts';
import { warmUp } from '../warmUp.ts';

const JOBS_PER_RUNNER = 3;
const JOB_MS = 2_000;
const GIVE_UP_MS = 600_000;

export const churn: WorldBenchmark = {
  name: 'churn',
  summary: 'N runners kept up while 3 N jobs of 2 s are worked off; whenever a runner has ended, another is started',
  defaultRunners: 50,
  figures: {
    jobs: { unit: 'jobs', what: 'of 2 s' },
    jobsPerSecond: { unit: '/s', what: 'from queueing all of them to the last one finished', budget: { kind: 'min', limit: 13 }, compare: 'actions-runner-controller: 3.7 (scale set, default) to 11.5 (legacy, tuned)' },
    goneP95Ms: { unit: 'ms', what: 'job finished → pod and registration gone, p95', budget: { kind: 'max', limit: 1_000 }, compare: 'actions-runner-controller: 2,600 to 15,100' },
    replacementP95Ms: { unit: 'ms', what: 'job finished → replacement online, p95', budget: { kind: 'max', limit: 1_500 }, compare: 'actions-runner-controller: 3,800 to 17,000' },
    'floor.jobsPerSecond': { unit: '/s', what: 'the same pods by a bare script on this machine in this run', compare: 'where the budgets were set: 18.4' },
    'floor.goneP95Ms': { unit: 'ms', what: 'as goneP95Ms', compare: 'where the budgets were set: 600' },
    'floor.replacementP95Ms': { unit: 'ms', what: 'as replacementP95Ms', compare: 'where the budgets were set: 1,100' },
    'floor.share': { unit: '', what: 'jobsPerSecond of the floor', compare: 'the budget where it was set: 0.71; actions-runner-controller there: 0.2 to 0.63' },
  },

  async run(world, runners): Promise<Measured> {
    const { agent, simulator, progress } = world;
    const jobs = runners * JOBS_PER_RUNNER;
    await world.startWorker().ready();
    await warmUp(world);
    progress(`starting ${runners} runners`);
    const numbers = Array.from({ length: runners }, (_, index) => index + 1);
    const started = new Map<string, StartedRunner>();
    const start = async (number: number): Promise<StartedRunner> => {
      const runner = await startRunner(world, number);
      started.set(runner.workflowId, runner);
      return runner;
    };
    await mapConcurrently(numbers, 16, start);
    await untilPhase(world, 'Idle', runners);

    const pods = await BarePods.open(world);
    // What keeps the number of runners up, in place of a set: a runner's container has ended, another is started.
    const replacementOf = new Map<string, Promise<StartedRunner>>();
    agent.onStep(({ step, workflowId }) => {
      if (step !== 'exited' || replacementOf.has(workflowId)) return;
      const replacement = start(runners + replacementOf.size + 1);
      replacement.catch(() => undefined); // thrown below, where it is awaited
      replacementOf.set(workflowId, replacement);
    });
    const registrations = new RegistrationWatch(simulator);
    const cpu = await world.cpuAccount();
    progress(`queueing ${jobs} jobs of ${JOB_MS / 1000} s`);
    const queuedAt = Date.now();
    await mapConcurrently(Array.from({ length: jobs }), 16, async () => await simulator.queueJob({ repo: REPOSITORY, sleepMs: JOB_MS }));
    await agent.until('all jobs are finished and their pods are gone', () => agent.count('gone') >= jobs, GIVE_UP_MS);
    await agent.until('all replacements are online', () => agent.count('online') >= jobs + runners, GIVE_UP_MS);
    const cores = await cpu.close();
    await registrations.stop();

    const done = [...replacementOf.keys()];
    const ends = await jobEnds(world, registrations, [...started.values()].filter(({ workflowId }) => replacementOf.has(workflowId)));
    const lastFinishedAt = Math.max(...[...ends.values()].map(({ finishedAt }) => finishedAt));
    progress('the same by a bare script');
    const floor = await floorOfChurn(pods, runners, jobs, JOB_MS);
    await pods.close();
    const jobsPerSecond = round(jobs / ((lastFinishedAt - queuedAt) / 1_000), 1);
    const gone = [...ends.values()].map(({ finishedAt, goneAt }) => goneAt - finishedAt);
    const replaced = await Promise.all(
      done.map(async (workflowId) => {
        const replacement = await replacementOf.get(workflowId);
        return (agent.of(replacement?.workflowId ?? '').online ?? Number.NaN) - (ends.get(workflowId)?.finishedAt ?? Number.NaN);
      }),
    );
    return {
      figures: {
        jobs,
        jobsPerSecond,
        goneP95Ms: percentile(gone, 0.95),
        replacementP95Ms: percentile(replaced, 0.95),
        'floor.jobsPerSecond': floor.jobsPerSecond,
        'floor.goneP95Ms': floor.goneP95Ms,
        'floor.replacementP95Ms': floor.replacementP95Ms,
        'floor.share': round(jobsPerSecond / floor.jobsPerSecond, 2),
      },
      details: {
        cores, runners, goneP50Ms: percentile(gone, 0.5), replacementP50Ms: percentile(replaced, 0.5), github: (await simulator.requestCounts()).byStatus },
    };
  },
};
