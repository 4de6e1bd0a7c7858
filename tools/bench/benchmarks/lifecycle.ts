import { omitUndefined } from '../../../core/domain/omitUndefined.ts';
import { apiServerMetrics } from '../apiServerMetrics.ts';
import type { FigureInfo, Measured, WorldBenchmark } from '../benchmark.ts';
import { historyCost, type HistoryCost } from '../historyCost.ts';
import { sum, type Sample } from '../metrics.ts';
import type { WorkerProcess } from '../processes/workerProcess.ts';
import { REPOSITORY, startRunner, untilClosed, untilPhase } from '../runners.ts';
import { measureSetRunners, type RunnerProfile, type SetRunnersCost } from '../setRunners.ts';
import { roundTo } from '../statistics.ts';
import { requestsSince, temporalRequests, totalRequests } from '../temporalRequests.ts';
import { DEFAULT_TIMING, type BenchEnvironment } from '../world.ts';

const JOB_MS = 1_000;
/** The worker's count of its requests. */
const OWN = 'holdfast_kubernetes_requests_total';
/**
 * The verbs of the requests for one runner, as the worker and as the API server name them. The
 * watch is shared.
 */
const VERBS = { get: 'GET', create: 'POST', delete: 'DELETE' } as const;
/**
 * Requests that only the worker makes. The agent reads Secrets, KWOK and the agent patch, and KWOK
 * deletes a pod that is deleted already.
 */
const WORKER_ONLY = [['create', 'pods'], ['create', 'secrets'], ['delete', 'pods'], ['delete', 'secrets']] as const; // prettier-ignore

/** Fifty concurrent short jobs, whose signals share workflow tasks. */
const CONCURRENT: RunnerProfile = {
  name: 'bench',
  ...DEFAULT_TIMING,
  jobMs: JOB_MS,
  rate: Number.POSITIVE_INFINITY,
  count: 50,
};
/**
 * Runners as users have them. A job of 30 s stands for one of five minutes: it is longer than every
 * delay of a notification, and after these nothing happens until its end.
 */
const PROFILES: readonly RunnerProfile[] = [
  { name: 'real', startupMs: 10_000, deletionMs: 3_000, jobMs: 30_000, rate: 1, count: 10 },
  { name: 'slow', startupMs: 30_000, deletionMs: 5_000, jobMs: 30_000, rate: 1, count: 10 },
];

export const lifecycle: WorldBenchmark = {
  name: 'lifecycle',
  summary:
    'the cost of an ephemeral runner with one job. bench: a single runner with a job of 1 s (with --runners N: N runners one after the other, of which the most expensive counts, and the mean of the requests). Figures that end with InSet: the mean of fifty runners in a set that follows webhooks. real and slow: the mean of ten runners in such a set, with a job of 30 s each, one a second; start-up takes 10 s and 30 s, the deletion of a pod 3 s and 5 s',
  defaultRunners: 1,
  figures: {
    'bench.workflowTasks': max('tasks', 'workflow tasks', 3),
    'bench.workflowTasksInSet': max('tasks', '… with its share of the set', 7, 'aim: 4'),
    'bench.events': max('events', 'events in the workflow history', 22),
    'bench.bytes': max('bytes', 'size of the workflow history', 6_900, 'aim: 6,144'),
    'bench.temporalRequests': max(
      'requests',
      'to Temporal, with the start, and with polls that returned a task',
      10,
      'aim: 9',
    ),
    'bench.temporalRequestsInSet': max(
      'requests',
      '… with its share of the set and its webhooks',
      24,
      'aim: 12',
    ),
    'bench.visibilityWrites': {
      unit: 'writes',
      what: 'writes of the record in lists: start, search attributes, end',
    },
    'bench.githubRequests': max('requests', 'to the CI server', 1),
    'bench.kubernetesRequests': {
      ...max('requests', 'to the Kubernetes API, without the shared watch', 4),
      compare: 'actions-runner-controller: 13.6 to 16.6 for each job',
    },
    ...profileFigures('real', { events: 27, workflowTasks: 4, temporalRequests: 14 }),
    ...profileFigures('slow', { events: 40, temporalRequests: 19 }),
  },

  async run(world, runners): Promise<Measured> {
    const single = await withWorker(
      world,
      async (worker) => await measureSingle(world, worker, runners),
    );
    const inSet = await withWorker(
      world,
      async (worker) => await measureSetRunners(world, worker, CONCURRENT),
    );
    const figures: Record<string, number> = {
      ...single.figures,
      'bench.workflowTasksInSet': inSet.workflowTasks,
      'bench.temporalRequestsInSet': inSet.temporalRequests,
    };
    const details: Record<string, unknown> = { ...single.details, inSet: inSet.details };
    for (const profile of PROFILES) {
      world.progress(`${profile.count} runners, as "${profile.name}"`);
      const { details: more, ...cost } = await withWorker(
        world,
        async (worker) => await measureSetRunners(world, worker, profile),
      );
      for (const [key, value] of Object.entries(cost)) figures[`${profile.name}.${key}`] = value;
      details[profile.name] = more;
    }
    return { figures, details };
  },
};

/**
 * Runs a measurement with a worker of its own, because a worker repeats requests about ended pods
 * up to half a minute later.
 */
async function withWorker<T>(
  world: BenchEnvironment,
  measure: (worker: WorkerProcess) => Promise<T>,
): Promise<T> {
  const worker = await world.startWorker().ready();
  try {
    return await measure(worker);
  } finally {
    await worker.stop();
  }
}

function max(unit: string, what: string, limit: number, note?: string): FigureInfo {
  return { unit, what, budget: { kind: 'max', limit, ...omitUndefined({ note }) } };
}

function profileFigures(
  name: string,
  aims: Partial<Record<keyof SetRunnersCost, number>>,
): Record<string, FigureInfo> {
  const withAim = (key: keyof SetRunnersCost, what: string): string =>
    aims[key] === undefined ? what : `${what} (aim: ≤ ${aims[key]})`;
  return {
    [`${name}.workflowTasks`]: {
      unit: 'tasks',
      what: withAim('workflowTasks', 'workflow tasks of a runner, with its share of the set'),
    },
    [`${name}.events`]: {
      unit: 'events',
      what: withAim('events', 'events in the history of a runner'),
    },
    [`${name}.bytes`]: { unit: 'bytes', what: 'size of the history of a runner' },
    [`${name}.temporalRequests`]: {
      unit: 'requests',
      what: withAim('temporalRequests', 'to Temporal, with its share of the set, and its webhooks'),
    },
    [`${name}.visibilityWrites`]: {
      unit: 'writes',
      what: 'writes of the record of a runner in lists',
    },
  };
}

/** Runs one runner after the other, without a set. */
async function measureSingle(
  world: BenchEnvironment,
  worker: WorkerProcess,
  runners: number,
): Promise<Measured> {
  const before = await readCounters(world, await worker.metrics());
  const ids: string[] = [];
  for (let number = 1; number <= runners; number++) {
    const { workflowId } = await startRunner(world, number);
    await untilPhase(world, 'Idle', 1);
    await world.simulator.queueJob({ repo: REPOSITORY, sleepMs: JOB_MS });
    await untilClosed(world, number);
    ids.push(workflowId);
  }
  const after = await readCounters(world, await worker.metrics());
  checkCounters(before, after, runners);
  const costs = await Promise.all(ids.map(async (id) => await historyCost(world.client, id)));
  const kubernetes = requestsSince(before.worker, after.worker);
  const github = requestsSince(before.github, after.github);
  // The benchmark starts the runners, not the worker.
  const temporal = {
    ...requestsSince(before.temporal, after.temporal),
    StartWorkflowExecution: runners,
  };
  const highest = (key: keyof HistoryCost): number => Math.max(...costs.map((cost) => cost[key]));
  const each = (requests: Record<string, number>): number =>
    roundTo(totalRequests(requests) / runners, 1);
  return {
    figures: {
      'bench.workflowTasks': highest('workflowTasks'),
      'bench.events': highest('events'),
      'bench.bytes': highest('bytes'),
      'bench.temporalRequests': each(temporal),
      'bench.visibilityWrites': highest('visibilityWrites'),
      'bench.githubRequests': each(github),
      'bench.kubernetesRequests': each(kubernetes),
    },
    details: { github, kubernetes, temporal },
  };
}

/**
 * Compares the worker's count of its requests with the API server's.
 * @throws Error if they differ
 */
function checkCounters(before: Counters, after: Counters, runners: number): void {
  for (const [verb, resource] of WORKER_ONLY) {
    const key = `${verb} ${resource}`;
    const own = (after.done.worker[key] ?? 0) - (before.done.worker[key] ?? 0);
    const servers = (after.done.apiServer[key] ?? 0) - (before.done.apiServer[key] ?? 0);
    // By then KWOK may have deleted the pods that it has seen deleted.
    const others = key === 'delete pods' ? runners : 0;
    if (servers < own || servers > own + others)
      throw new Error(
        `the worker counts ${own} requests "${key}", and the API server ${servers}: one of them is wrong`,
      );
  }
}

interface Counters {
  /** All requests of the worker, whatever the response. */
  readonly worker: Record<string, number>;
  /** Successful requests, as counted by the worker and by the API server. */
  readonly done: {
    readonly worker: Record<string, number>;
    readonly apiServer: Record<string, number>;
  };
  readonly github: Record<string, number>;
  readonly temporal: Record<string, number>;
}

async function readCounters(
  { kubeconfig, simulator }: BenchEnvironment,
  ofWorker: readonly Sample[],
): Promise<Counters> {
  const ofServer = await apiServerMetrics(kubeconfig);
  const { byStatus } = await simulator.requestCounts();
  const worker: Record<string, number> = {};
  const done: Counters['done'] = { worker: {}, apiServer: {} };
  for (const [verb, method] of Object.entries(VERBS)) {
    for (const resource of ['pods', 'secrets']) {
      const key = `${verb} ${resource}`;
      worker[key] = sum(ofWorker, OWN, { verb, resource });
      for (const code of ['200', '201', '202']) {
        done.worker[key] =
          (done.worker[key] ?? 0) + sum(ofWorker, OWN, { verb, resource, status: code });
        done.apiServer[key] =
          (done.apiServer[key] ?? 0) +
          sum(ofServer, 'apiserver_request_total', {
            verb: method,
            resource,
            subresource: '',
            code,
          });
      }
    }
  }
  return { worker, done, github: byStatus, temporal: temporalRequests(ofWorker) };
}
