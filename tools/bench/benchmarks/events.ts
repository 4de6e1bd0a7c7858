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
    'the three events of each of N jobs, sent to one set: its histories, the state it carries over, and the memory of its worker',
  defaultRunners: 34_000,
  severalWorkers: true,
  figures: {
    events: { unit: 'events', what: 'events of jobs: queued, started and ended' },
    perSecond: {
      unit: '/s',
      what: 'events processed, from the first signal until the set has counted the last event',
    },
    runs: { unit: 'runs', what: 'runs of the set, which continues as new' },
    longestHistory: { unit: 'events', what: 'events in the longest history of a run' },
    carriedKiB: { unit: 'KiB', what: 'maximum state carried over from one run to the next' },
    earlyRssMiB: {
      unit: 'MiB',
      what: 'resident memory of the largest worker, median of the second tenth of the run',
    },
    lateRssMiB: { unit: 'MiB', what: '… median of the last tenth' },
  },

  async run(world, jobs): Promise<Measured> {
    const { client, progress } = world;
    const workers = await world.startWorkers();
    // A paused set counts its jobs, and starts no runners that would affect the measurement.
    const set = await startSet(world, 'events', {
      minIdle: 0,
      max: 1,
      paused: true,
      queueCheck: '0s',
    });
    const handle = client.workflow.getHandle(setWorkflowId(set));
    const cpu = await world.cpuAccount();
    const startedAt = performance.now();
    const rssMiB = await sendEvents(world, set, jobs, workers);
    for (
      const deadline = Date.now() + GIVE_UP_MS;
      (await statusOf(client, set)).jobs.completedTotal < jobs;
      await delay(100)
    ) {
      if (Date.now() > deadline)
        throw new Error(
          `the set has counted ${(await statusOf(client, set)).jobs.completedTotal} of ${jobs} jobs`,
        );
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    const cores = await cpu.close();
    progress('reading the histories');
    const runs = await runsOf(client, handle.workflowId);
    await handle.terminate('the benchmark has ended');
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

/**
 * Sends the events in bursts of signals.
 * @returns the memory of the largest worker after each burst (MiB)
 */
async function sendEvents(
  { client, progress }: BenchEnvironment,
  set: string,
  jobs: number,
  workers: readonly WorkerProcess[],
): Promise<number[]> {
  const handle = client.workflow.getHandle(setWorkflowId(set));
  const rssMiB: number[] = [];
  const signals = Math.ceil(jobs / JOBS_PER_SIGNAL);
  let reportedAt = Date.now();
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
    // Wait until the set has processed the burst: a backlog would measure the server.
    await statusOf(client, set);
    rssMiB.push(Math.max(...(await Promise.all(workers.map((worker) => worker.rssMiB())))));
    if (Date.now() - reportedAt < 5_000) continue;
    progress(`${sent * JOBS_PER_SIGNAL * EVENTS_PER_JOB} events`);
    reportedAt = Date.now();
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
