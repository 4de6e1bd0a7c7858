import { setTimeout as delay } from 'node:timers/promises';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { sum } from '../metrics.ts';
import type { WorkerProcess } from '../processes/workerProcess.ts';
import { countInPhase, startRunner, untilPhase, type StartOptions } from '../runners.ts';
import { roundTo } from '../statistics.ts';
import type { BenchEnvironment } from '../world.ts';

/** Default duration of the measurement (s). HOLDFAST_BENCH_WINDOW sets another. */
const WINDOW_S = 60;
const SAMPLE_EVERY_MS = 1_000;
/** Time after the last runner is idle until the measurement starts (ms). */
const SETTLE_MS = 5_000;
const WAVE = 100;
const PROGRESS_EVERY = 1_000;
const GIVE_UP_MS = 120_000;

export const waiting: WorldBenchmark = {
  name: 'waiting',
  summary:
    'memory and CPU of the worker for N runners that wait for a job (the budget is for 10,000 runners; with HOLDFAST_BENCH_WINDOW=600, or with HOLDFAST_BENCH_RESYNC=1m, each wait re-reads its pod once during the measurement)',
  defaultRunners: 1_000,
  figures: {
    runners: { unit: 'runners', what: 'waiting runners' },
    workerRssMiB: {
      unit: 'MiB',
      what: 'maximum resident memory of the worker',
      budget: { kind: 'max', limit: 1_024, note: 'with 10,000 runners' },
    },
    workerCpuPercent: {
      unit: '% of a core',
      what: 'mean CPU time of the worker',
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
    progress(`measuring the worker for ${windowS} s`);
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
        // Each wait re-reads its pod every ten minutes: 1.7 re-reads a second with 1,000 runners.
        resyncs: after.resyncs - requests.resyncs,
        kubernetesRequests: after.kubernetes - requests.kubernetes,
        githubRequests: (await simulator.requestCounts()).total - githubBefore,
      },
    };
  },
};

/** Starts the runners in waves. Thousands of concurrent starts would overload the machine. */
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

/** Returns the number of waits that have re-read their pod, and of requests to Kubernetes. */
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
