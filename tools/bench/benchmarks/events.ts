import { setTimeout as delay } from 'node:timers/promises';
import { jobEventsSignal, setWorkflowId, type JobEvent } from '../../../core/contract/index.ts';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import type { WorkerProcess } from '../processes/workerProcess.ts';
import { REPOSITORY } from '../runners.ts';
import { runsOf, startSet, statusOf } from '../sets.ts';
import { percentile, roundTo } from '../statistics.ts';
import type { BenchEnvironment } from '../world.ts';

const EVENTS_PER_JOB = 3;
const JOBS_PER_SIGNAL = 25;
const SIGNALS_AT_ONCE = 20;
const GIVE_UP_MS = 120_000;

export const events: WorldBenchmark = {
  name: 'events',
  summary:
    'one set that lives through the three events of each of N jobs: its histories, what it carries from run to run, and the memory of its worker',
  defaultRunners: 34_000,
  severalWorkers: true,
  figures: {
    events: { unit: 'events', what: 'of jobs: queued, started and ended' },
    perSecond: {
      unit: '/s',
      what: 'taken in, from the first signal until the set has counted the last',
    },
    runs: { unit: 'runs', what: 'of the set: it continues as new' },
    longestHistory: { unit: 'events', what: 'in the longest history of them' },
    carriedKiB: { unit: 'KiB', what: 'taken over from one run to the next, the most' },
    earlyRssMiB: {
      unit: 'MiB',
      what: "the worker's (the largest one's) resident memory, median of the second tenth",
    },
    lateRssMiB: { unit: 'MiB', what: '… of the last tenth' },
  },

  async run(world, jobs): Promise<Measured> {
    const { client, progress } = world;
    const workers = await world.startWorkers();
    // Paused: it counts its jobs, and starts nothing that would be measured with it.
    const set = await startSet(world, 'told', {
      minIdle: 0,
      max: 1,
      paused: true,
      queueCheck: '0s',
    });
    const handle = client.workflow.getHandle(setWorkflowId(set));
    const cpu = await world.cpuAccount();
    const startedAt = performance.now();
    const rssMiB = await tell(world, set, jobs, workers);
    for (
      const deadline = Date.now() + GIVE_UP_MS;
      (await statusOf(client, set)).jobs.completedTotal < jobs;
      await delay(100)
    ) {
      if (Date.now() > deadline)
        throw new Error(
          `of ${jobs} jobs the set has counted ${(await statusOf(client, set)).jobs.completedTotal}`,
        );
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    const cores = await cpu.close();
    progress('reading the histories');
    const runs = await runsOf(client, handle.workflowId);
    await handle.terminate('the benchmark is over');
    const tenth = Math.max(1, Math.floor(rssMiB.length / 10));
    return {
      figures: {
        events: jobs * EVENTS_PER_JOB,
        perSecond: roundTo((jobs * EVENTS_PER_JOB) / seconds),
        runs: runs.length,
        longestHistory: Math.max(...runs.map(({ historyLength }) => historyLength)),
        carriedKiB: roundTo(Math.max(...runs.map(({ carriedBytes }) => carriedBytes)) / 1_024, 1),
        earlyRssMiB: roundTo(percentile(rssMiB.slice(tenth, 2 * tenth), 0.5)),
        lateRssMiB: roundTo(percentile(rssMiB.slice(-tenth), 0.5)),
      },
      details: {
        cores,
        carriedBytes: runs.map(({ carriedBytes }) => carriedBytes).toReversed(),
        rssMiB: rssMiB.map((each) => roundTo(each)),
      },
    };
  },
};

/** @returns the memory of the largest worker after each burst of signals */
async function tell(
  { client, progress }: BenchEnvironment,
  set: string,
  jobs: number,
  workers: readonly WorkerProcess[],
): Promise<number[]> {
  const handle = client.workflow.getHandle(setWorkflowId(set));
  const rssMiB: number[] = [];
  const signals = Math.ceil(jobs / JOBS_PER_SIGNAL);
  let toldAt = Date.now();
  for (let sent = 0; sent < signals;) {
    const burst = Array.from(
      { length: Math.min(SIGNALS_AT_ONCE, signals - sent) },
      (_, index) => sent + index,
    );
    await Promise.all(
      burst.map(async (signal) => {
        const from = signal * JOBS_PER_SIGNAL;
        const ids = Array.from(
          { length: Math.min(JOBS_PER_SIGNAL, jobs - from) },
          (_, index) => from + index + 1,
        );
        await handle.signal(jobEventsSignal, {
          events: ids.flatMap((jobId) => eventsOf(set, jobId)),
        });
      }),
    );
    sent += burst.length;
    // The next when these were taken in: a backlog would measure the server.
    await statusOf(client, set);
    rssMiB.push(Math.max(...(await Promise.all(workers.map((worker) => worker.rssMiB())))));
    if (Date.now() - toldAt < 5_000) continue;
    progress(`${sent * JOBS_PER_SIGNAL * EVENTS_PER_JOB} events`);
    toldAt = Date.now();
  }
  return rssMiB;
}

function eventsOf(set: string, jobId: number): JobEvent[] {
  const job = {
    jobId: String(jobId),
    runAttempt: 1,
    repository: REPOSITORY,
    labels: ['self-hosted', set],
    at: Date.now(),
  };
  const runnerName = `${set}-abcdefghij-0a1b2c3d4e`;
  return [
    { ...job, action: 'queued' },
    { ...job, action: 'in_progress', runnerName },
    { ...job, action: 'completed', runnerName, conclusion: 'success' },
  ];
}
