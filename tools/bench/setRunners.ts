/** The cost of the runners of a set that follows webhooks: their histories, tasks and requests. */
import { setTimeout as delay } from 'node:timers/promises';
import { setWorkflowId } from '../../core/contract/index.ts';
import { queueAtPace, untilAtRest, type Pace } from './jobPace.ts';
import type { PodTiming } from './processes/kwokAgentProtocol.ts';
import type { WorkerProcess } from './processes/workerProcess.ts';
import { countClosed, untilClosed } from './runners.ts';
import { historyCost } from './historyCost.ts';
import { startSet } from './sets.ts';
import { mean, roundTo } from './statistics.ts';
import { requestsSince, temporalRequests, totalRequests } from './temporalRequests.ts';
import { DEFAULT_TIMING, WEBHOOK_SECRET, type BenchEnvironment } from './world.ts';

/** Time for the set to learn of the end of its last runner (ms). */
const SETTLED_MS = 3_000;

/** How the runners of a set spend their time, and how their jobs arrive. */
export interface RunnerProfile extends Pace, PodTiming {
  readonly name: string;
}

/** Means of the runners. */
export interface SetRunnersCost {
  readonly events: number;
  readonly bytes: number;
  /** Tasks of the runner and its share of the set's. */
  readonly workflowTasks: number;
  /** Requests for the runner, its share of the set's, and those of its webhooks. */
  readonly temporalRequests: number;
  readonly visibilityWrites: number;
  readonly details: unknown;
}

/** Runs one job in each runner of a new set without idle runners. */
export async function measureSetRunners(
  world: BenchEnvironment,
  worker: WorkerProcess,
  { name, startupMs, deletionMs, ...pace }: RunnerProfile,
): Promise<SetRunnersCost> {
  const { agent, simulator } = world;
  const { count } = pace;
  await simulator.setWebhook({ url: (await worker.webhook()).href, secret: WEBHOOK_SECRET });
  const set = await startSet(world, name, { minIdle: 0, max: count });
  agent.startOver();
  agent.setTiming({ startupMs, deletionMs });
  const closedBefore = await countClosed(world);
  const setTasksBefore = await workflowTasksOfSet(world, set);
  const requestsBefore = temporalRequests(await worker.metrics());
  await queueAtPace(world, set, pace);
  // Visibility answers this without a request to the worker.
  await untilClosed(world, closedBefore + count);
  await delay(SETTLED_MS);
  const requests = requestsSince(requestsBefore, temporalRequests(await worker.metrics()));
  await untilAtRest(world, set, closedBefore + count);
  agent.setTiming(DEFAULT_TIMING);
  const setTasks = (await workflowTasksOfSet(world, set)) - setTasksBefore;
  const runners = await Promise.all(
    [...agent.all().keys()].map(async (id) => await historyCost(world.client, id)),
  );
  if (runners.length !== count)
    throw new Error(`${count} jobs were queued, and ${runners.length} runners of the set had one`);
  const tasks = mean(runners.map(({ workflowTasks }) => workflowTasks));
  return {
    events: roundTo(mean(runners.map(({ events }) => events)), 1),
    bytes: roundTo(mean(runners.map(({ bytes }) => bytes))),
    workflowTasks: roundTo(tasks + setTasks / count, 1),
    temporalRequests: roundTo(totalRequests(requests) / count, 1),
    visibilityWrites: roundTo(mean(runners.map(({ visibilityWrites }) => visibilityWrites)), 1),
    details: { workflowTasksOfRunner: roundTo(tasks, 1), setTasks, requests },
  };
}

async function workflowTasksOfSet(
  { client, taskQueue }: BenchEnvironment,
  set: string,
): Promise<number> {
  const workflowId = setWorkflowId(set);
  let tasks = 0;
  for await (const { runId } of client.workflow.list({
    query: `WorkflowId = '${workflowId}' AND TaskQueue = '${taskQueue}'`,
  }))
    tasks += (await historyCost(client, workflowId, runId)).workflowTasks;
  return tasks;
}
