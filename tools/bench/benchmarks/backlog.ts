import { setTimeout as delay } from 'node:timers/promises';
import { jobEventsSignal, setWorkflowId } from '../../../core/contract/index.ts';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { mapConcurrently } from '../concurrency.ts';
import { REPOSITORY } from '../runners.ts';
import { failedWorkflowTasks, startSet, statusOf } from '../sets.ts';
import { roundTo } from '../statistics.ts';

const SIGNALS_AT_ONCE = 50;
const TIMEOUT_MS = 300_000;
/**
 * Causes of failed tasks that the server itself produces: the task was scheduled for a stopped
 * worker, or too many signals arrived during the task.
 */
const SERVER_CAUSES: ReadonlySet<string> = new Set([
  'WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND',
  'WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND',
  'TIMEOUT_TYPE_SCHEDULE_TO_START',
]);

export const backlog: WorldBenchmark = {
  name: 'backlog',
  summary: 'N signals sent to one set while no worker runs: time until the set has processed them',
  defaultRunners: 10_000,
  figures: {
    pending: { unit: 'signals', what: 'accepted by Temporal while no worker ran' },
    takenInMs: {
      unit: 'ms',
      what: 'from the readiness of the worker until the set has counted all signals',
      budget: { kind: 'max', limit: 30_000 },
    },
    failedTasks: {
      unit: 'tasks',
      what: 'workflow tasks of the set that failed or timed out in that time',
      budget: { kind: 'max', limit: 0 },
    },
    refused: { unit: 'signals', what: 'rejected by Temporal: a run can have at most 10,000' },
  },

  async run(world, signals): Promise<Measured> {
    const { client, progress } = world;
    const first = await world.startWorker().ready();
    const set = await startSet(world, 'backlog', {
      minIdle: 0,
      max: 1,
      paused: true,
      queueCheck: '0s',
    });
    const handle = client.workflow.getHandle(setWorkflowId(set));
    await first.stop();
    progress('sending signals to a set without a worker');
    let refused = 0;
    const ids = Array.from({ length: signals }, (_none, index) => index + 1);
    await mapConcurrently(ids, SIGNALS_AT_ONCE, async (jobId) => {
      const event = {
        action: 'queued' as const,
        jobId: String(jobId),
        runAttempt: 1,
        repository: REPOSITORY,
        labels: ['self-hosted', set],
        at: Date.now(),
      };
      await handle
        .signal(jobEventsSignal, { events: [event], at: Date.now() })
        .catch(() => refused++);
    });
    const pending = signals - refused;
    const startedAt = performance.now();
    await world.startWorker().ready();
    const readyAt = performance.now();
    for (const deadline = Date.now() + TIMEOUT_MS; ; await delay(200)) {
      const queued = await statusOf(client, set).then(
        ({ jobs }) => jobs.queued,
        () => 0, // a query of a set that is behind may time out
      );
      if (queued === pending) break;
      if (Date.now() > deadline) throw new Error(`the set counted ${queued} of ${pending} signals`);
    }
    const takenInMs = roundTo(performance.now() - readyAt);
    const causes = await failedWorkflowTasks(client, [handle.workflowId]);
    await handle.terminate('the benchmark is over');
    const failedTasks = Object.entries(causes)
      .filter(([cause]) => !SERVER_CAUSES.has(cause))
      .reduce((sum, [, count]) => sum + count, 0);
    return {
      figures: { pending, takenInMs, failedTasks, refused },
      details: { causes, workerStartMs: roundTo(readyAt - startedAt) },
    };
  },
};
