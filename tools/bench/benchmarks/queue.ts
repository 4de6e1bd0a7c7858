import { setTimeout as delay } from 'node:timers/promises';
import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { until } from '../../chaos/waitUntil.ts';
import { BarePods } from '../barePods.ts';
import { baselineQueue } from '../baseline.ts';
import type { FigureInfo, Measured, WorldBenchmark } from '../benchmark.ts';
import { cpuMsByProcess, cpuOfJobs } from '../cpuAccount.ts';
import { queueAtPace, timeOfStep, untilAtRest } from '../jobPace.ts';
import type { WorkerProcess } from '../processes/workerProcess.ts';
import { ORGANIZATION, countClosed } from '../runners.ts';
import { startSet } from '../sets.ts';
import { percentile, roundTo } from '../statistics.ts';
import { requestsSince, temporalRequests, totalRequests } from '../temporalRequests.ts';
import { warmUp } from '../warmUp.ts';
import { WEBHOOK_SECRET, type BenchEnvironment } from '../world.ts';

/** Number of jobs at each rate (jobs per second). */
const JOBS: ReadonlyMap<number, number> = new Map([
  [0.5, 20],
  [1, 30],
  [2, 40],
  [5, 60],
]);
/** Rates to measure. Fewer of them help to profile one. */
const RATES = process.env['HOLDFAST_BENCH_RATES']?.split(',').map(Number) ?? [...JOBS.keys()];
/** Rate of the budgets, as in a small organization (jobs per second). */
const BUDGET_RATE = 1;
const BURST = 50;
const JOB_MS = 4_000;
/** Number of jobs for the baseline, enough for a p95. */
const FLOOR_JOBS = 20;
const GIVE_UP_MS = 600_000;
/** Time from the deletion of the last pod until workflow and set are idle (ms). */
const SETTLED_MS = 3_000;
/** Maximum difference between the p95 and that of the baseline (ms). */
const MAX_BEYOND_FLOOR_MS = 100;

/** Benchmark of single jobs at several rates. */
export const queue: WorldBenchmark = {
  name: 'queue',
  summary:
    'single jobs of 4 s for a set of at most N runners with webhook and without idle runners: 0.5, 1, 2 and 5 per second; then 50 at once; then 1 per second and 50 at once for a set of a scale set',
  defaultRunners: 100,
  figures: {
    ...Object.fromEntries([...JOBS.keys()].flatMap((rate) => Object.entries(figuresOf(rate)))),
    'burst.requestsPerJob': {
      unit: 'requests',
      what: `to Temporal, with ${BURST} jobs queued at once`,
    },
    'burst.cpuMsPerJob': {
      unit: 'ms',
      what: 'CPU of worker and Temporal, without that of an idle worker',
    },
    singleTimes: {
      unit: '×',
      what: `CPU of a job at ${BUDGET_RATE} per second, relative to one in the burst`,
    },
    ...scaleSetFigures(),
    beyondFloorP95Ms: {
      unit: 'ms',
      what: `p95 at ${BUDGET_RATE} per second, minus that of the baseline`,
      budget: { kind: 'max', limit: MAX_BEYOND_FLOOR_MS },
    },
  },

  async run(world, runners): Promise<Measured> {
    const { simulator, agent, progress } = world;
    const worker = await world.startWorker().ready();
    await warmUp(world);
    await simulator.setWebhook({ url: (await worker.webhook()).href, secret: WEBHOOK_SECRET });
    const set = await startSet(world, 'queue', { minIdle: 0, max: runners });
    const first = queueAtPace(world, set, { rate: Infinity, count: 1, jobMs: JOB_MS });
    await agent.until('a job runs', () => agent.count('jobStarted') > 0, GIVE_UP_MS);
    const pods = await BarePods.open(world);
    await first;
    await agent.until('the job has ended', () => agent.count('gone') > 0, GIVE_UP_MS);
    const figures: Record<string, number> = {};
    const details: Record<string, unknown> = { runners };
    await delay(SETTLED_MS);
    for (const rate of RATES) {
      const count = JOBS.get(rate) ?? 0;
      progress(`${rate} jobs a second, ${count} of them`);
      const measured = await follow(world, worker, set, { rate, count });
      const floor = await baselineQueue(pods, { rate, count: FLOOR_JOBS, jobMs: JOB_MS });
      const all = {
        ...measured.figures,
        'floor.p50Ms': percentile(floor, 0.5),
        'floor.p95Ms': percentile(floor, 0.95),
      };
      for (const [key, value] of Object.entries(all)) figures[`rates.${rate}.${key}`] = value;
      details[`rate${rate}`] = measured.details;
    }
    progress(`${BURST} jobs at once`);
    const burst = await follow(world, worker, set, { rate: Infinity, count: BURST });
    details['burst'] = { ...burst.details, p50Ms: burst.figures['p50Ms'] };
    const assigned = await followScaleSet(world, worker, runners);
    details['scaleSet'] = assigned.details;
    const of = (key: string): number => figures[`rates.${BUDGET_RATE}.${key}`] ?? Number.NaN;
    const { requestsPerJob = Number.NaN, cpuMsPerJob = Number.NaN } = burst.figures;
    return {
      figures: {
        ...figures,
        ...assigned.figures,
        'burst.requestsPerJob': requestsPerJob,
        'burst.cpuMsPerJob': cpuMsPerJob,
        singleTimes: roundTo(of('cpuMsPerJob') / cpuMsPerJob, 2),
        beyondFloorP95Ms: of('p95Ms') - of('floor.p95Ms'),
      },
      details,
    };
  },
};

function figuresOf(rate: number): Record<string, FigureInfo> {
  const at = `rates.${rate}`;
  const cpu = { unit: 'ms', what: 'CPU of worker and Temporal, without that of an idle worker' };
  return {
    [`${at}.p50Ms`]: {
      unit: 'ms',
      what: `job queued and its webhook sent → job started, at ${rate} per second, median`,
    },
    [`${at}.p95Ms`]: { unit: 'ms', what: '… p95' },
    [`${at}.requestsPerJob`]: {
      unit: 'requests',
      what: 'to Temporal: its runner, its set, its webhooks',
    },
    [`${at}.cpuMsPerJob`]:
      rate === BUDGET_RATE ? { ...cpu, budget: { kind: 'max', limit: 120 } } : cpu,
    [`${at}.floor.p50Ms`]: {
      unit: 'ms',
      what: 'baseline: the same pods created by a script, as p50Ms',
    },
    [`${at}.floor.p95Ms`]: { unit: 'ms', what: '… p95' },
  };
}

/** Polls of a session for messages. Their number depends on the time, not on the jobs. */
const POLL = 'GET /tenant/queue/{id}/{session}';

function scaleSetFigures(): Record<string, FigureInfo> {
  return {
    'scaleSet.p50Ms': {
      unit: 'ms',
      what: `job queued → job started, at ${BUDGET_RATE} per second, by a scale set, median`,
    },
    'scaleSet.p95Ms': { unit: 'ms', what: '… p95' },
    'scaleSet.requestsPerJob': { unit: 'requests', what: 'to Temporal' },
    'scaleSet.cpuMsPerJob': {
      unit: 'ms',
      what: 'CPU of worker and Temporal, without that of an idle worker',
    },
    'scaleSet.gitHubRequestsPerJob': {
      unit: 'requests',
      what: `to GitHub, without polls, at ${BUDGET_RATE} per second`,
    },
    'scaleSet.burst.p95Ms': {
      unit: 'ms',
      what: `job queued → job started, ${BURST} jobs queued at once, p95`,
    },
    'scaleSet.burst.gitHubRequestsPerJob': {
      unit: 'requests',
      what: `to GitHub, without polls, ${BURST} jobs queued at once`,
      budget: { kind: 'max', limit: 2 },
    },
  };
}

/** Measures the same jobs for a set that gets them from a scale set instead of a webhook. */
async function followScaleSet(
  world: BenchEnvironment,
  worker: WorkerProcess,
  runners: number,
): Promise<Measured> {
  const { simulator, taskQueue, progress } = world;
  await simulator.setWebhook(undefined);
  const label = `${taskQueue}-assigned`;
  const set = await startSet(world, 'assigned', {
    minIdle: 0,
    max: runners,
    template: { organization: ORGANIZATION, labels: [label], demand: 'scaleSet' },
  });
  await until('a session', async () => (await simulator.scaleSet(label))?.session !== undefined);
  const measure = async (rate: number, count: number): Promise<Measured> => {
    progress(`${count} jobs of a scale set, ${rate} per second`);
    await simulator.resetRequests();
    const measured = await follow(world, worker, set, { rate, count, labels: [label] });
    const { byEndpoint } = await simulator.requestCounts();
    const { [POLL]: polls = 0, ...others } = byEndpoint;
    const perJob = (number: number): number => roundTo(number / count, 2);
    const total = Object.values(others).reduce((sum, number) => sum + number, 0);
    return {
      figures: { ...measured.figures, gitHubRequestsPerJob: perJob(total) },
      details: {
        ...measured.details,
        pollsPerJob: perJob(polls),
        gitHub: Object.fromEntries(
          Object.entries(others).map(([endpoint, number]) => [endpoint, perJob(number)]),
        ),
      },
    };
  };
  const single = await measure(BUDGET_RATE, JOBS.get(BUDGET_RATE) ?? 0);
  const burst = await measure(Infinity, BURST);
  return {
    figures: {
      ...Object.fromEntries(
        Object.entries(single.figures).map(([key, value]) => [`scaleSet.${key}`, value]),
      ),
      'scaleSet.burst.p95Ms': burst.figures['p95Ms'] ?? Number.NaN,
      'scaleSet.burst.gitHubRequestsPerJob': burst.figures['gitHubRequestsPerJob'] ?? Number.NaN,
    },
    details: { single: single.details, burst: burst.details },
  };
}

/** Queues jobs at a rate, waits until all have ended, and measures their cost. */
async function follow(
  world: BenchEnvironment,
  worker: WorkerProcess,
  set: string,
  { rate, count, labels }: { rate: number; count: number; labels?: readonly string[] },
): Promise<Measured> {
  const { agent, simulator } = world;
  const before = { gone: agent.count('gone'), closed: await countClosed(world) };
  const idle = await world.idleCpu();
  const requestsBefore = temporalRequests(await worker.metrics());
  const account = await world.cpuAccount();
  const ids = await queueAtPace(world, set, {
    rate,
    count,
    jobMs: JOB_MS,
    ...omitUndefined({ labels }),
  });
  await agent.until(
    `${count} jobs are done and their pods are gone`,
    () => agent.count('gone') >= before.gone + count,
    GIVE_UP_MS,
  );
  await delay(SETTLED_MS);
  const spent = await account.spent();
  const requests = requestsSince(requestsBefore, temporalRequests(await worker.metrics()));
  await untilAtRest(world, set, before.closed + count);
  const jobs = (await simulator.jobs()).filter(({ id }) => ids.has(id));
  const waited = jobs.map(
    (job) => timeOfStep(world, set, job, 'jobStarted') - Date.parse(job.created_at),
  );
  return {
    figures: {
      p50Ms: percentile(waited, 0.5),
      p95Ms: percentile(waited, 0.95),
      requestsPerJob: roundTo(totalRequests(requests) / count, 1),
      cpuMsPerJob: cpuOfJobs(spent, idle, count).ms,
    },
    details: {
      cpuMs: cpuMsByProcess(spent, idle, count),
      requests: Object.fromEntries(
        Object.entries(requests).map(([kind, number]) => [kind, roundTo(number / count, 2)]),
      ),
    },
  };
}
