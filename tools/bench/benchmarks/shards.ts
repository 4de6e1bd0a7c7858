import { setTimeout as delay } from 'node:timers/promises';
import { runnerWorkflowIdFromName } from '../../../core/domain/setRunnerNames.ts';
import type { SimulatedJob } from '../../simulator/types.ts';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { mapConcurrently } from '../concurrency.ts';
import { ORGANIZATION, REPOSITORY, countClosed } from '../runners.ts';
import { failedWorkflowTasks, runsOf, startSet, statusOf } from '../sets.ts';
import { percentile, roundTo } from '../statistics.ts';
import { retryUntilAvailable } from '../retryUntilAvailable.ts';
import { WEBHOOK_SECRET, type BenchEnvironment } from '../world.ts';
import { setWorkflowId } from '../../../core/contract/index.ts';

const SETS = 20;
const JOB_MS = 1_000;
const QUEUED_AT_ONCE = 16;
const GIVE_UP_MS = 3_600_000;
/** Time for two checks of the CI server's jobs, which sets do every five minutes (ms). */
const TWO_CHECKS_MS = 11 * 60_000;
/** Maximum age of the webhook's list of sets (ms). */
const LISTED_MS = 6_000;

export const shards: WorldBenchmark = {
  name: 'shards',
  summary: `${SETS} equal sets of at most N/${SETS} runners each share N jobs of 1 s, all queued at once, by webhooks`,
  defaultRunners: 10_000,
  figures: {
    jobs: { unit: 'jobs', what: 'jobs, each run once by a runner of one of the sets' },
    seconds: {
      unit: 's',
      what: 'from the first queued job until no set has a runner or a job',
    },
    servedSeconds: {
      unit: 's',
      what: '… until the end of the last job; afterwards sets only drain unused runners',
    },
    perSecond: { unit: '/s', what: 'jobs, over the whole time' },
    runnersPerJob: {
      unit: 'runners',
      what: 'runners started; the CI server may assign a job to the runner of another set than its own',
      budget: { kind: 'max', limit: 1.1 },
    },
    missed: { unit: 'jobs', what: 'jobs not completed', budget: { kind: 'max', limit: 0 } },
    twice: {
      unit: 'jobs',
      what: 'jobs assigned more than once',
      budget: { kind: 'max', limit: 0 },
    },
    leastShare: { unit: 'jobs', what: 'jobs run by the set with the fewest' },
    mostShare: { unit: 'jobs', what: '… with the most' },
    onlineP95Ms: { unit: 'ms', what: 'job queued → its runner online, p95' },
  },

  async run(world, runners): Promise<Measured> {
    const { simulator, progress, client, agent } = world;
    const worker = await world.startWorker().ready();
    await simulator.setWebhook({ url: (await worker.webhook()).href, secret: WEBHOOK_SECRET });
    const label = `${world.taskQueue}-shared`;
    const max = Math.ceil(runners / SETS);
    const input = {
      minIdle: 0,
      max,
      scaleDownDelay: '1s',
      template: { organization: ORGANIZATION, labels: ['self-hosted', label] },
    };
    const sets = await Promise.all(
      Array.from(
        { length: SETS },
        async (_none, index) => await startSet(world, `s${index}`, input),
      ),
    );
    await delay(LISTED_MS); // until the webhook has listed all sets
    progress(`${runners} jobs`);
    const cpu = await world.cpuAccount();
    const startedAt = performance.now();
    const numbers = Array.from({ length: runners }, (_none, index) => index);
    const ids = new Set(
      (
        await mapConcurrently(
          numbers,
          QUEUED_AT_ONCE,
          async () =>
            await simulator.queueJob({
              repo: REPOSITORY,
              labels: ['self-hosted', label],
              sleepMs: JOB_MS,
            }),
        )
      ).map(({ id }) => id),
    );
    progress('all jobs are queued');
    const { rerouted, unknown } = await untilAtRest(world, sets, ids);
    const seconds = (performance.now() - startedAt) / 1_000;
    const cores = await cpu.close();
    const jobs = (await simulator.jobs()).filter(({ id }) => ids.has(id));
    const setOf = (job: SimulatedJob): string | undefined =>
      sets.find((set) => runnerWorkflowIdFromName(set, job.runner_name ?? '') !== undefined);
    const shares = [
      ...Map.groupBy(
        jobs.filter((job) => setOf(job) !== undefined),
        setOf,
      ).values(),
    ].map(({ length }) => length);
    const waited = jobs.flatMap((job) => {
      const { online } = agent.of(
        runnerWorkflowIdFromName(setOf(job) ?? '', job.runner_name ?? '') ?? '',
      );
      return online === undefined ? [] : [online - Date.parse(job.created_at)];
    });
    const runs = await Promise.all(
      sets.map(async (set) => await runsOf(client, setWorkflowId(set))),
    );
    const lostTasks = await failedWorkflowTasks(client, sets.map(setWorkflowId));
    return {
      figures: {
        jobs: runners,
        seconds: roundTo(seconds, 1),
        servedSeconds: roundTo(
          (Math.max(...jobs.map(({ completed_at: done }) => Date.parse(done ?? ''))) -
            Math.min(...jobs.map(({ created_at: queued }) => Date.parse(queued)))) /
            1_000,
          1,
        ),
        perSecond: roundTo(runners / seconds, 1),
        runnersPerJob: roundTo((await countClosed(world)) / runners, 3),
        missed:
          runners -
          jobs.filter((job) => job.conclusion === 'success' && setOf(job) !== undefined).length,
        twice: jobs.filter(({ assignments }) => assignments > 1).length,
        leastShare: Math.min(...shares),
        mostShare: Math.max(...shares),
        onlineP95Ms: percentile(waited, 0.95),
      },
      details: {
        sets: SETS,
        max,
        mostPassedOn: rerouted,
        unknownAtRest: unknown,
        cores,
        lostTasks,
        runsOfSets: runs.reduce((sum, { length }) => sum + length, 0),
        longestHistory: Math.max(...runs.flat().map(({ historyLength }) => historyLength)),
      },
    };
  },
};

/**
 * Waits until no set has a runner or a job.
 * @returns `rerouted`: the maximum number of rerouted jobs; `unknown`: the number of jobs that were
 * not completed when the sets first had neither, because no set knew them
 */
async function untilAtRest(
  world: BenchEnvironment,
  sets: readonly string[],
  ids: ReadonlySet<number>,
): Promise<{ rerouted: number; unknown: number }> {
  const deadline = Date.now() + GIVE_UP_MS;
  let rerouted = 0;
  let atRest: { readonly since: number; readonly unknown: number } | undefined;
  for (; ; await delay(1_000)) {
    const all = await retryUntilAvailable(
      world,
      async () => await Promise.all(sets.map(async (set) => await statusOf(world.client, set))),
    );
    rerouted = Math.max(
      rerouted,
      all.reduce((sum, { rerouted: away = 0 }) => sum + away, 0),
    );
    const busy = all.reduce(
      (sum, { runners, jobs: { queued, running } }) => sum + runners.length + queued + running,
      0,
    );
    if (busy === 0 && (await countClosed(world)) >= ids.size) {
      const unknown = (await world.simulator.jobs()).filter(
        ({ id, status }) => ids.has(id) && status !== 'completed',
      ).length;
      atRest ??= { since: Date.now(), unknown };
      if (unknown === 0 || Date.now() > atRest.since + TWO_CHECKS_MS)
        return { rerouted, unknown: atRest.unknown };
      world.progress(`no set has a runner or a job, and ${unknown} jobs are not completed`);
    }
    if (Date.now() > deadline)
      throw new Error(
        `sets still have runners or jobs: ${JSON.stringify(all.map(({ desired, runners, jobs: counted }) => ({ desired, runners: runners.length, ...counted })))}`,
      );
  }
}
