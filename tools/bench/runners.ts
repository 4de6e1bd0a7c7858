/** Starts the workflows of many runners, and counts them by phase. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  RUNNER_WORKFLOW,
  type RunnerInput,
  type RunnerIntervals,
  type RunnerPhase,
} from '../../core/contract/index.ts';
import { mapConcurrently } from './concurrency.ts';
import type { BenchEnvironment } from './world.ts';
import { retryUntilAvailable } from './retryUntilAvailable.ts';

/** Number of concurrent start requests. */
const START_CONCURRENCY = 16;
/** Organization of the runners. */
export const ORGANIZATION = 'bench';
/** Repository of the jobs. */
export const REPOSITORY = 'bench/app';

/** A started runner. */
export interface StartedRunner {
  readonly workflowId: string;
  /** The runner's name without the hash that Holdfast appends. */
  readonly name: string;
  /** Time when Temporal had accepted the start (ms since the epoch). */
  readonly acceptedAt: number;
}

/** Options of {@link startRunners}. */
export interface StartOptions {
  readonly intervals?: RunnerIntervals;
  /** Prefix of the names. @default runner */
  readonly prefix?: string;
}

/** Starts runners. */
export async function startRunners(
  world: BenchEnvironment,
  count: number,
  options: StartOptions = {},
): Promise<StartedRunner[]> {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  return await mapConcurrently(
    numbers,
    START_CONCURRENCY,
    async (number) => await startRunner(world, number, options),
  );
}

/**
 * Starts one runner.
 * @param number - unique within one run
 */
export async function startRunner(
  world: BenchEnvironment,
  number: number,
  { intervals, prefix = 'runner' }: StartOptions = {},
): Promise<StartedRunner> {
  const name = `${prefix}-${number}`;
  const workflowId = `${world.taskQueue}-${name}`;
  const input: RunnerInput = { name, organization: ORGANIZATION, ...(intervals && { intervals }) };
  await world.client.workflow.start(RUNNER_WORKFLOW, {
    workflowId,
    taskQueue: world.taskQueue,
    args: [input],
  });
  return { workflowId, name, acceptedAt: Date.now() };
}

/**
 * Returns the number of running runners of this run in a phase. It uses visibility, because
 * thousands of queries would exceed Temporal's limits.
 */
export async function countInPhase(world: BenchEnvironment, phase: RunnerPhase): Promise<number> {
  return await countRunners(world, `ExecutionStatus = 'Running' AND RunnerPhase = '${phase}'`);
}

/** Returns the number of runners of this run that have ended. */
export async function countClosed(world: BenchEnvironment): Promise<number> {
  return await countRunners(world, "ExecutionStatus != 'Running'");
}

async function countRunners(world: BenchEnvironment, filter: string): Promise<number> {
  const query = `WorkflowType = '${RUNNER_WORKFLOW}' AND TaskQueue = '${world.taskQueue}' AND ${filter}`;
  return (await retryUntilAvailable(world, async () => await world.client.workflow.count(query)))
    .count;
}

/** Waits until that many runners are in a phase. */
export async function untilPhase(
  world: BenchEnvironment,
  phase: RunnerPhase,
  count: number,
): Promise<void> {
  await untilCount(world, `in phase ${phase}`, count, async () => await countInPhase(world, phase));
}

/** Waits until that many runners have ended. */
export async function untilClosed(world: BenchEnvironment, count: number): Promise<void> {
  await untilCount(world, 'ended', count, async () => await countClosed(world));
}

/**
 * Maximum time without progress (ms). Longer than the ten minutes after which a wait re-reads its
 * pod: an overloaded server may have started an activity that no worker has received.
 */
const STUCK_MS = 11 * 60_000;

async function untilCount(
  world: BenchEnvironment,
  state: string,
  desired: number,
  count: () => Promise<number>,
): Promise<void> {
  let last = -1;
  let progressAt = Date.now();
  let reportedAt = Date.now();
  for (;;) {
    world.agent.check();
    const now = await count();
    if (now >= desired) return;
    if (now !== last) progressAt = Date.now();
    last = now;
    if (Date.now() - progressAt > STUCK_MS)
      throw new Error(
        `${now} of ${desired} runners ${state}; no progress for ${STUCK_MS / 1000} s`,
      );
    if (Date.now() - reportedAt > 5_000) {
      world.progress(`${now} of ${desired} runners ${state}`);
      reportedAt = Date.now();
    }
    await delay(250);
  }
}
