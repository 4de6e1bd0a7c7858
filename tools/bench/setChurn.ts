/** A set of so many runners that works off jobs: when each runner was gone, and when its successor was there. */
import { querySetStatus } from '../../activities/runnerSet/querySetStatus.ts';
import { setWorkflowId } from '../../core/contract/index.ts';
import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { CpuSpent } from './cpuAccount.ts';
import { RegistrationWatch } from './registrations.ts';
import { REPOSITORY } from './runners.ts';
import { startSet } from './sets.ts';
import type { BenchEnvironment } from './world.ts';

/** Thousands of runners work off some seven jobs a second on two cores. */
const GIVE_UP_MS = 3_600_000;

export interface SetChurn {
  /** From a job's end, by the CI server's clock, until its runner's pod and registration are both gone, in ms. */
  readonly gone: readonly number[];
  /** … until its successor is online: the ends in their order, with the starts in theirs. */
  readonly replaced: readonly number[];
  /** From a successor's pod until it is online. */
  readonly online: readonly number[];
  /** From the first job queued until the last has ended. */
  readonly seconds: number;
  readonly spent: CpuSpent;
}

/** Starts a set of that size, and waits until it has all its runners. @returns its name */
export async function startFullSet(world: BenchEnvironment, runners: number): Promise<string> {
  const { agent, client } = world;
  const set = await startSet(world, 'churned', { replicas: runners });
  await agent.until(
    `${runners} runners are online`,
    () => agent.count('online') >= runners,
    GIVE_UP_MS,
  );
  // One question a second, and none while anything is measured.
  for (;;) {
    const status = await querySetStatus(client, setWorkflowId(set));
    if (status.runnerCounts.idle === runners) return set;
    await delay(1_000);
  }
}

/** @param queue - queues so many jobs for runners of that label */
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
    'all jobs are finished and their pods are gone',
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
          `the runner of job ${id} is not all gone: pod ${podGoneAt}, registration ${registrationGoneAt}`,
        );
      return { finishedAt, goneAt: Math.max(podGoneAt, registrationGoneAt) };
    })
    .toSorted((a, b) => a.finishedAt - b.finishedAt);
  if (ends.length !== jobs)
    throw new Error(`${ends.length} jobs of the set are over, and ${jobs} were queued`);
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
