import { setTimeout as delay } from 'node:timers/promises';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { REPOSITORY, countClosed, untilPhase } from '../runners.ts';
import { mapConcurrently } from '../concurrency.ts';
import { startSet, statusOf } from '../sets.ts';
import { roundTo } from '../statistics.ts';
import { retryUntilAvailable } from '../retryUntilAvailable.ts';
import { WEBHOOK_SECRET } from '../world.ts';
import type { RunnerSetStatus } from '../../../core/contract/index.ts';

/** Duration of a job (ms). Longer than the benchmark, so that no job ends by itself. */
const JOB_MS = 6 * 3_600_000;
const QUEUED_AT_ONCE = 16;
const GIVE_UP_MS = 1_800_000;

export const away: WorldBenchmark = {
  name: 'away',
  summary:
    'one set of N busy runners: kill -9 of the worker, all pods end while no worker runs, and a new worker is started',
  defaultRunners: 5_000,
  figures: {
    runners: { unit: 'runners', what: 'runners that were busy when the worker was killed' },
    seconds: {
      unit: 's',
      what: 'from the start of the new worker until all runners have ended and the set has no runner',
    },
    perSecond: { unit: '/s', what: 'runners ended, over that time' },
    startedAfter: {
      unit: 'runners',
      what: 'runners that the set has started as replacements, although no job remains',
      budget: { kind: 'max', limit: 0 },
    },
    jobsLeft: {
      unit: 'jobs',
      what: 'jobs that the set still counts as queued or running at the end',
      budget: { kind: 'max', limit: 0 },
    },
  },

  async run(world, runners): Promise<Measured> {
    const { agent, client, simulator, progress } = world;
    const killed = await world.startWorker().ready();
    await simulator.setWebhook({ url: (await killed.webhook()).href, secret: WEBHOOK_SECRET });
    const set = await startSet(world, 'away', { minIdle: 0, max: runners });
    progress(`${runners} jobs`);
    await mapConcurrently(
      Array.from({ length: runners }),
      QUEUED_AT_ONCE,
      async () =>
        await simulator.queueJob({
          repo: REPOSITORY,
          labels: ['self-hosted', set],
          sleepMs: JOB_MS,
        }),
    );
    await untilPhase(world, 'Busy', runners);
    const busy = (
      await retryUntilAvailable(world, async () => await statusOf(client, set))
    ).runners.map(({ workflowId }) => workflowId);
    progress('killing the worker (SIGKILL)');
    await killed.kill();
    const ended = await agent.endAll(busy);
    if (ended !== runners) throw new Error(`only ${ended} of ${runners} pods could be ended`);
    progress(`${ended} pods ended while no worker ran; starting a new worker`);
    const worker = world.startWorker();
    const cpu = await world.cpuAccount();
    await worker.ready();
    const readyAt = Date.now();
    const deadline = readyAt + GIVE_UP_MS;
    const look = async (): Promise<RunnerSetStatus> =>
      await retryUntilAvailable(world, async () => await statusOf(client, set));
    let status = await look();
    while (status.runners.length > 0 || (await countClosed(world)) < runners) {
      if (Date.now() > deadline)
        throw new Error(
          `the set still knows of ${status.runners.length} runners, and ${await countClosed(world)} of ${runners} have ended`,
        );
      await delay(250);
      status = await look();
    }
    const seconds = (Date.now() - worker.startedAt) / 1_000;
    const cores = await cpu.close();
    return {
      figures: {
        runners,
        seconds: roundTo(seconds, 1),
        perSecond: roundTo(runners / seconds, 1),
        startedAfter: (await countClosed(world)) - runners,
        jobsLeft: status.jobs.queued + status.jobs.running,
      },
      details: {
        cores,
        workerReadyAfterS: roundTo((readyAt - worker.startedAt) / 1_000, 1),
        desired: status.desired,
      },
    };
  },
};
