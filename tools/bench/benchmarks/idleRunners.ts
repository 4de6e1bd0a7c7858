import { setTimeout as delay } from 'node:timers/promises';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { sum } from '../metrics.ts';
import type { WorkerProcess } from '../processes/workerProcess.ts';
import { countInPhase, startRunner, untilPhase, type StartOptions } from '../runners.ts';
import { roundTo } from '../statistics.ts';
import type { BenchEnvironment } from '../world.ts';

/** How long the worker is watched, in s, unless HOLDFAST_BENCH_WINDOW says otherwise. */
const WINDOW_S = 60;
const SAMPLE_EVERY_MS = 1_000;
/** After the last runner is idle: the worker's garbage and the server's are still warm. */
const SETTLE_MS = 5_000;
const WAVE = 100;
const PROGRESS_EVERY = 1_000;
const GIVE_UP_MS = 120_000;

export const waiting: WorldBenchmark = {
  name: 'waiting',
  summary:
    'what N runners that wait for a job cost the worker (the budget is for 10,000; HOLDFAST_BENCH_WINDOW=600 watches for 600 s, and so sees every wait look live again once; so does HOLDFAST_BENCH_RESYNC=1m in one minute)',
  defaultRunners: 1_000,
  figures: {
    runners: { unit: 'runners', what: 'waiting' },
    workerRssMiB: {
      unit: 'MiB',
      what: 'resident memory of the worker, the highest in a minute',
      budget: { kind: 'max', limit: 1_024, note: 'with 10,000 runners' },
    },
    workerCpuPercent: {
      unit: '% of a core',
      what: 'CPU time of the worker, mean',
      budget: { kind: 'max', limit: 5, note: 'with 10,000 runners' },
    },
  },

  async run(world, runners): Promise<Measured> {
    const { agent, simulator, progress } = world;
    const windowS = Number(process.env['HOLDFAST_BENCH_WINDOW'] ?? WINDOW_S);
    const worker = await world.startWorker().ready();
    progress(`starting ${runners} runners`);
    const resync = process.env['HOLDFAST_BENCH_RESYNC'];
    await startInWaves(world, runners, resync === undefined ? {} : { intervals: { resync } });
    await untilPhase(world, 'Idle', runners);
    await delay(SETTLE_MS);
    progress(`watching the worker for ${windowS} s`);
    const requests = await readRequests(worker);
    const githubBefore = (await simulator.requestCounts()).total;
    const cpu = await world.cpuAccount();
    const { rssMiB, cpuPercent } = await watch(worker, windowS * 1_000);
    const cores = await cpu.close();
    const after = await readRequests(worker);
    const idle = await countInPhase(world, 'Idle');
    agent.check();
    if (idle !== runners) throw new Error(`${idle} of ${runners} runners were waiting at the end`);
    return {
      figures: { runners, workerRssMiB: roundTo(rssMiB), workerCpuPercent: roundTo(cpuPercent, 1) },
      details: {
        cores,
        windowS,
        // Each wait looks live again every ten minutes: 1.7 of them a second with 1,000 runners.
        resyncs: after.resyncs - requests.resyncs,
        kubernetesRequests: after.kubernetes - requests.kubernetes,
        githubRequests: (await simulator.requestCounts()).total - githubBefore,
      },
    };
  },
};

/** The measured state is the waiting; thousands at once would overload the machine on the way there. */
async function startInWaves(
  world: BenchEnvironment,
  runners: number,
  options: StartOptions,
): Promise<void> {
  for (let started = 0; started < runners;) {
    const wave = Array.from(
      { length: Math.min(WAVE, runners - started) },
      (_, index) => started + index + 1,
    );
    await Promise.all(wave.map(async (number) => await startRunner(world, number, options)));
    started += wave.length;
    if (started % PROGRESS_EVERY === 0) world.progress(`${started} of ${runners} runners`);
    await world.agent.until(
      `${started} of ${runners} runners are online`,
      () => world.agent.count('online') >= started,
      GIVE_UP_MS,
    );
  }
}

/** Activities of the main queue that ended in the window are waits that looked live again; nothing else happens. */
async function readRequests(
  worker: WorkerProcess,
): Promise<{ resyncs: number; kubernetes: number }> {
  const samples = await worker.metrics();
  return {
    resyncs: sum(samples, 'temporal_activity_task_received_total', { activity_type: 'awaitPod' }),
    kubernetes: sum(samples, 'holdfast_kubernetes_requests_total'),
  };
}

async function watch(
  worker: WorkerProcess,
  forMs: number,
): Promise<{ rssMiB: number; cpuPercent: number }> {
  const startedAt = performance.now();
  const cpuBefore = await worker.cpuSeconds();
  let rssMiB = 0;
  while (performance.now() - startedAt < forMs) {
    rssMiB = Math.max(rssMiB, await worker.rssMiB());
    await delay(SAMPLE_EVERY_MS);
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return { rssMiB, cpuPercent: (((await worker.cpuSeconds()) - cpuBefore) / seconds) * 100 };
}
