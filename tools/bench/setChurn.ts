/** Measures the deletion and replacement of the runners of a set that runs jobs. */
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { setWorkflowId } from '../../core/contract/index.ts';
import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { CpuSpent } from './cpuAccount.ts';
import { RegistrationWatch } from './registrations.ts';
import { REPOSITORY } from './runners.ts';
import { startSet } from './sets.ts';
import type { BenchEnvironment } from './world.ts';

/** Time limit (ms). Thousands of runners run about seven jobs a second on two cores. */
const GIVE_UP_MS = 3_600_000;

/** Durations of the ends and starts of runners (ms, unless noted). */
export interface SetChurn {
  /** From the end of each job (CI server's clock) until its pod and registration are deleted. */
  readonly gone: readonly number[];
  /** From the end of each job until its successor is online, in the order of both. */
  readonly replaced: readonly number[];
  /** From the creation of each successor's pod until the successor is online. */
  readonly online: readonly number[];
  /** From the first queued job until the end of the last one (s). */
  readonly seconds: number;
  readonly spent: CpuSpent;
}

/**
 * Starts a set of that size, and waits until all its runners are idle.
 * @returns its name
 */
export async function startFullSet(world: BenchEnvironment, runners: number): Promise<string> {
  const { agent, client } = world;
  const set = await startSet(world, 'churned', { replicas: runners });
  await agent.until(
    `${runners} runners are online`,
    () => agent.count('online') >= runners,
    GIVE_UP_MS,
  );
  // Query the set once a second, and not during the measurement.
  for (;;) {
    const status = await querySetStatus(client, setWorkflowId(set));
    if (status.runnerCounts.idle === runners) return set;
    await delay(1_000);
  }
}

/**
 * Runs jobs in the set, and measures the ends and starts of its runners.
 * @param queue - calls its argument once for each job to queue
 */
export async function churnSet(
  world: BenchEnvironment,
  set: string,
  runners: number,
  jobs: number,
  queue: (job: () => Promise<unknown>) => Promise<void>,
  jobMs: number,
): Promise<SetChurn> {
  const { agent, simulator } = world;
  const registrations = new RegistrationWatch(simulator);
  const account = await world.cpuAccount();
  const queuedAt = Date.now();
  await queue(
    async () =>
      await simulator.queueJob({ repo: REPOSITORY, labels: ['self-hosted', set], sleepMs: jobMs }),
  );
  await agent.until(
    'all jobs are finished and their pods are deleted',
    () => agent.count('gone') >= jobs,
    GIVE_UP_MS,
  );
  await agent.until(
    'all replacements are online',
    () => agent.count('online') >= jobs + runners,
    GIVE_UP_MS,
  );
  const spent = await account.spent();
  await registrations.stop();

  const done = (await simulator.jobs()).filter(({ labels }) => labels.includes(set));
  const ends = done
    .map(({ id, runner_name: name, completed_at: at }) => {
      const finishedAt = Date.parse(at ?? '');
      const podGoneAt = agent.of(runnerWorkflowIdFromName(set, name ?? '') ?? '').gone;
      const registrationGoneAt = registrations.removedAt(name ?? '', finishedAt);
      if (podGoneAt === undefined || registrationGoneAt === undefined)
        throw new Error(
          `the runner of job ${id} is not deleted completely: pod ${podGoneAt}, registration ${registrationGoneAt}`,
        );
      return { finishedAt, goneAt: Math.max(podGoneAt, registrationGoneAt) };
    })
    .toSorted((a, b) => a.finishedAt - b.finishedAt);
  if (ends.length !== jobs)
    throw new Error(`${ends.length} jobs of the set have ended, and ${jobs} were queued`);
  const successors = [...agent.all().values()]
    .toSorted((a, b) => (a.created ?? 0) - (b.created ?? 0))
    .slice(runners, runners + jobs);
  return {
    gone: ends.map(({ finishedAt, goneAt }) => goneAt - finishedAt),
    replaced: successors.map(
      ({ online = Number.NaN }, index) => online - (ends[index]?.finishedAt ?? Number.NaN),
    ),
    online: successors.map(({ online = Number.NaN, created = Number.NaN }) => online - created),
    seconds: ((ends.at(-1)?.finishedAt ?? Number.NaN) - queuedAt) / 1_000,
    spent,
  };
}
