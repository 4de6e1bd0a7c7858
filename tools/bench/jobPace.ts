/** Jobs that are queued at a constant rate. */
import { setTimeout as delay } from 'node:timers/promises';
import { runnerWorkflowIdFromName } from '../../core/domain/setRunnerNames.ts';
import type { SimulatedJob } from '../simulator/types.ts';
import type { PodStep } from './processes/kwokAgentProtocol.ts';
import { REPOSITORY, countClosed } from './runners.ts';
import { statusOf } from './sets.ts';
import type { BenchEnvironment } from './world.ts';

const GIVE_UP_MS = 600_000;

/** Rate, number and duration of jobs. */
export interface Pace {
  /** Jobs per second. `Infinity`: all at once. */
  readonly rate: number;
  readonly count: number;
  readonly jobMs: number;
  /** Labels that the jobs request. @default those of a set of {@link startSet} */
  readonly labels?: readonly string[];
}

/**
 * Queues jobs for runners of the set, without waiting for earlier ones.
 * @returns the IDs of the jobs
 */
export async function queueAtPace(
  { simulator }: BenchEnvironment,
  set: string,
  { rate, count, jobMs, labels = ['self-hosted', set] }: Pace,
): Promise<ReadonlySet<number>> {
  const startedAt = performance.now();
  const queued: Promise<SimulatedJob>[] = [];
  for (let number = 0; number < count; number++) {
    await delay(Math.max(0, startedAt + (number * 1_000) / rate - performance.now()));
    queued.push(simulator.queueJob({ repo: REPOSITORY, labels: [...labels], sleepMs: jobMs }));
  }
  return new Set((await Promise.all(queued)).map(({ id }) => id));
}

/**
 * Returns the time of a step of the runner that ran the job (ms since the epoch).
 * @throws Error if the job was not run once, with success, by a runner of the set
 */
export function timeOfStep(
  { agent }: BenchEnvironment,
  set: string,
  job: SimulatedJob,
  step: PodStep['step'],
): number {
  const at = agent.of(runnerWorkflowIdFromName(set, job.runner_name ?? '') ?? '')[step];
  if (job.conclusion !== 'success' || job.assignments !== 1 || at === undefined)
    throw new Error(
      `job ${job.id} was not run once by a runner of the set: ${JSON.stringify(job)}`,
    );
  return at;
}

/** Waits until the set has no runner and no job, so that rates do not affect each other. */
export async function untilAtRest(
  world: BenchEnvironment,
  set: string,
  closed: number,
): Promise<void> {
  const deadline = Date.now() + GIVE_UP_MS;
  for (;;) {
    const { runners, jobs } = await statusOf(world.client, set);
    if (
      runners.length === 0 &&
      jobs.queued + jobs.running === 0 &&
      (await countClosed(world)) >= closed
    )
      return;
    if (Date.now() > deadline)
      throw new Error(
        `set ${set} still has runners or jobs: ${runners.length} runners, ${JSON.stringify(jobs)}`,
      );
    await delay(250);
  }
}
