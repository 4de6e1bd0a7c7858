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
/** Sets at rest look at the CI server's jobs every five minutes: what two looks do not find is missed. */
const TWO_LOOKS_MS = 11 * 60_000;
/** As long as the webhook may go by its list of sets. */
const LISTED_MS = 6_000;

export const shards: WorldBenchmark = {
  name: 'shards',
  summary: `${SETS} equal sets of at most N/${SETS} runners each share N jobs of 1 s, all queued at once, by webhooks`,
  defaultRunners: 10_000,
  figures: {
    jobs: { unit: 'jobs', what: 'each run once, by a runner of one of the sets' },
    seconds: {
      unit: 's',
      what: 'from the first that was queued until all runners are gone and all sets at rest',
    },
    servedSeconds: {
      unit: 's',
      what: '… until the last job was done: the rest is what sets still take for queued, and idle runners',
    },
    perSecond: { unit: '/s', what: 'jobs, over the whole time' },
    runnersPerJob: {
      unit: 'runners',
      what: 'started: a job may be given to a runner of another set than the one that has started one for it',
      budget: { kind: 'max', limit: 1.1 },
    },
    missed: { unit: 'jobs', what: 'not run to their end', budget: { kind: 'max', limit: 0 } },
    twice: {
      unit: 'jobs',
      what: 'given to a runner more than once',
      budget: { kind: 'max', limit: 0 },
    },
    leastShare: { unit: 'jobs', what: 'run by the set with the fewest' },
    mostShare: { unit: 'jobs', what: '… with the most' },
    onlineP95Ms: { unit: 'ms', what: 'job queued → the runner that took it online, p95' },
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
    await delay(LISTED_MS); // the webhook has listed them all
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
    progress('all queued');
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
 * @returns `rerouted`: the most jobs that were with another set than the one they were routed to; `unknown`: how many were not done when all sets were at
 *   rest for the first time, until a look at the CI server found them
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
      if (unknown === 0 || Date.now() > atRest.since + TWO_LOOKS_MS)
        return { rerouted, unknown: atRest.unknown };
      world.progress(`all sets are at rest, and ${unknown} jobs are not done`);
    }
    if (Date.now() > deadline)
      throw new Error(
        `the sets have not come to rest: ${JSON.stringify(all.map(({ desired, runners, jobs: counted }) => ({ desired, runners: runners.length, ...counted })))}`,
      );
  }
}
