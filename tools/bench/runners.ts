/** Starting many runners' workflows, and counting how far they are. */
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

/** Start calls under way at once. */
const START_CONCURRENCY = 16;
/** The organization whose runners they are; jobs are queued in a repository of it. */
export const ORGANIZATION = 'bench';
export const REPOSITORY = 'bench/app';

export interface StartedRunner {
  readonly workflowId: string;
  /** The runner's name without the hash that Holdfast appends. */
  readonly name: string;
  /** When Temporal had accepted the start (ms since the epoch). */
  readonly acceptedAt: number;
}

export interface StartOptions {
  readonly intervals?: RunnerIntervals;
  /** Of their names. @default runner */
  readonly prefix?: string;
}

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

/** @param number - unique within one run */
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

/** How many of this run's runners are in that phase and running (visibility: asking each of thousands would be refused). */
export async function countInPhase(world: BenchEnvironment, phase: RunnerPhase): Promise<number> {
  return await countRunners(world, `ExecutionStatus = 'Running' AND RunnerPhase = '${phase}'`);
}

/** How many of this run's runners have ended their lives. */
export async function countClosed(world: BenchEnvironment): Promise<number> {
  return await countRunners(world, "ExecutionStatus != 'Running'");
}

async function countRunners(world: BenchEnvironment, such: string): Promise<number> {
  const query = `WorkflowType = '${RUNNER_WORKFLOW}' AND TaskQueue = '${world.taskQueue}' AND ${such}`;
  return (await retryUntilAvailable(world, async () => await world.client.workflow.count(query)))
    .count;
}

export async function untilPhase(
  world: BenchEnvironment,
  phase: RunnerPhase,
  count: number,
): Promise<void> {
  await untilCount(world, `in phase ${phase}`, count, async () => await countInPhase(world, phase));
}

export async function untilClosed(world: BenchEnvironment, count: number): Promise<void> {
  await untilCount(world, 'at their end', count, async () => await countClosed(world));
}

/**
 * A benchmark may be slow, but not stuck: without any progress for so long it gives up. Longer than the ten minutes after which a wait
 * looks live again: an overloaded server may have started an activity and never told the worker.
 */
const STUCK_MS = 11 * 60_000;

async function untilCount(
  world: BenchEnvironment,
  where: string,
  wanted: number,
  count: () => Promise<number>,
): Promise<void> {
  let last = -1;
  let progressAt = Date.now();
  let toldAt = Date.now();
  for (;;) {
    world.agent.check();
    const now = await count();
    if (now >= wanted) return;
    if (now !== last) progressAt = Date.now();
    last = now;
    if (Date.now() - progressAt > STUCK_MS)
      throw new Error(
        `${now} of ${wanted} runners are ${where}, and for ${STUCK_MS / 1000} s none came after them`,
      );
    if (Date.now() - toldAt > 5_000) {
      world.progress(`${now} of ${wanted} runners ${where}`);
      toldAt = Date.now();
    }
    await delay(250);
  }
}
