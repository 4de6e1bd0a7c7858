import { setWorkflowId } from '../../../core/contract/index.ts';
import { apiServerMetrics } from '../apiServerMetrics.ts';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { sum, type Sample } from '../metrics.ts';
import type { WorkerProcess } from '../processes/workerProcess.ts';
import { REPOSITORY, startRunner, untilClosed, untilPhase } from '../runners.ts';
import { startSet } from '../sets.ts';
import { roundTo } from '../statistics.ts';
import { requestsSince, temporalRequests, totalRequests } from '../temporalRequests.ts';
import { WEBHOOK_SECRET, type BenchEnvironment } from '../world.ts';

/** From temporal.api.enums.v1.EventType. */
const EVENT = { workflowTaskCompleted: 7, searchAttributes: 40 } as const;
const JOB_MS = 1_000;
const IN_SET = 50;
/** The worker's count of its requests. */
const OWN = 'holdfast_kubernetes_requests_total';
/** The verbs of those that belong to a life, as the worker and as the API server name them. The watch is shared. */
const VERBS = { get: 'GET', create: 'POST', delete: 'DELETE' } as const;
/** Only the worker does these: the agent reads Secrets, KWOK and the agent patch, and KWOK's deletion of a deleted pod comes too late. */
const WORKER_ONLY = [['create', 'pods'], ['create', 'secrets'], ['delete', 'pods'], ['delete', 'secrets']] as const; // prettier-ignore

export const lifecycle: WorldBenchmark = {
  name: 'lifecycle',
  summary:
    'what one uneventful ephemeral life costs, alone (with --runners N: N lives, one after the other; the dearest, and the mean of the requests); and as one of fifty of a set that follows webhooks',
  defaultRunners: 1,
  figures: {
    workflowTasks: { unit: 'tasks', what: 'workflow tasks', budget: { kind: 'max', limit: 3 } },
    workflowTasksInSet: {
      unit: 'tasks',
      what: 'workflow tasks of a life and of its share of the set',
      budget: { kind: 'max', limit: 7, note: 'aim: 4' },
    },
    events: {
      unit: 'events',
      what: 'events in the workflow history',
      budget: { kind: 'max', limit: 22 },
    },
    bytes: {
      unit: 'bytes',
      what: 'size of the workflow history',
      budget: { kind: 'max', limit: 6_800, note: 'aim: 6,144' },
    },
    temporalRequests: {
      unit: 'requests',
      what: 'to Temporal, with the start, and with polls that were answered',
      budget: { kind: 'max', limit: 10, note: 'aim: 9' },
    },
    temporalRequestsInSet: {
      unit: 'requests',
      what: '… of a life, of its share of the set, and of its webhooks',
      budget: { kind: 'max', limit: 24, note: 'aim: 12' },
    },
    visibilityWrites: {
      unit: 'writes',
      what: 'of its record in lists: start, search attributes, end',
    },
    githubRequests: {
      unit: 'requests',
      what: 'to the CI server',
      budget: { kind: 'max', limit: 1 },
    },
    kubernetesRequests: {
      unit: 'requests',
      what: 'to the Kubernetes API, without the shared watch',
      budget: { kind: 'max', limit: 4 },
      compare: 'actions-runner-controller: 13.6 to 16.6 for each job',
    },
  },

  async run(world, runners): Promise<Measured> {
    const worker = await world.startWorker().ready();
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
    const lives = await Promise.all(ids.map(async (id) => await lifeOf(world, id)));
    for (const [verb, resource] of WORKER_ONLY) {
      const key = `${verb} ${resource}`;
      const own = (after.done.worker[key] ?? 0) - (before.done.worker[key] ?? 0);
      const servers = (after.done.apiServer[key] ?? 0) - (before.done.apiServer[key] ?? 0);
      // By then KWOK may have deleted what it has seen deleted.
      const others = key === 'delete pods' ? runners : 0;
      if (servers < own || servers > own + others)
        throw new Error(
          `the worker counts ${own} requests "${key}", and the API server ${servers}: one of them is wrong`,
        );
    }
    const kubernetes = requestsSince(before.worker, after.worker);
    const github = requestsSince(before.github, after.github);
    // Whoever starts it is no worker.
    const temporal = {
      ...requestsSince(before.temporal, after.temporal),
      StartWorkflowExecution: runners,
    };
    const inSet = await livesInSet(world, worker, runners);
    const dearest = (of: (life: Life) => number): number => Math.max(...lives.map(of));
    return {
      figures: {
        workflowTasks: dearest(({ workflowTasks }) => workflowTasks),
        workflowTasksInSet: inSet.workflowTasks,
        events: dearest(({ events }) => events),
        bytes: dearest(({ bytes }) => bytes),
        temporalRequests: roundTo(totalRequests(temporal) / runners, 1),
        temporalRequestsInSet: inSet.temporalRequests,
        visibilityWrites: dearest(({ visibilityWrites }) => visibilityWrites),
        githubRequests: roundTo(totalRequests(github) / runners, 1),
        kubernetesRequests: roundTo(totalRequests(kubernetes) / runners, 1),
      },
      details: { github, kubernetes, temporal, inSet: inSet.details },
    };
  },
};

interface Life {
  readonly events: number;
  readonly bytes: number;
  readonly workflowTasks: number;
  readonly visibilityWrites: number;
}

async function lifeOf({ client }: BenchEnvironment, workflowId: string): Promise<Life> {
  const handle = client.workflow.getHandle(workflowId);
  const { historyLength, historySize } = await handle.describe();
  const kinds = (await handle.fetchHistory()).events?.map(({ eventType }) => eventType) ?? [];
  const count = (wanted: number): number => kinds.filter((kind) => kind === wanted).length;
  return {
    events: historyLength,
    bytes: historySize ?? Number.NaN,
    workflowTasks: count(EVENT.workflowTaskCompleted),
    visibilityWrites: 2 + count(EVENT.searchAttributes),
  };
}

/** Lives under way together: all jobs are queued at once, and GitHub's webhooks tell of them. */
async function livesInSet(
  world: BenchEnvironment,
  worker: WorkerProcess,
  before: number,
): Promise<{ workflowTasks: number; temporalRequests: number; details: unknown }> {
  const { agent, client, simulator, taskQueue } = world;
  await simulator.setWebhook({ url: (await worker.webhook()).href, secret: WEBHOOK_SECRET });
  const set = await startSet(world, 'lives', { minIdle: 0, max: IN_SET });
  agent.startOver();
  const ofSet = async (): Promise<number> => {
    let tasks = 0;
    for await (const { runId } of client.workflow.list({
      query: `WorkflowId = '${setWorkflowId(set)}' AND TaskQueue = '${taskQueue}'`,
    })) {
      const { events } = await client.workflow.getHandle(setWorkflowId(set), runId).fetchHistory();
      tasks +=
        events?.filter(({ eventType }) => eventType === EVENT.workflowTaskCompleted).length ?? 0;
    }
    return tasks;
  };
  const tasksBefore = await ofSet();
  const requestsBefore = temporalRequests(await worker.metrics());
  for (let job = 0; job < IN_SET; job++)
    await simulator.queueJob({ repo: REPOSITORY, labels: ['self-hosted', set], sleepMs: JOB_MS });
  await untilClosed(world, before + IN_SET);
  const requests = requestsSince(requestsBefore, temporalRequests(await worker.metrics()));
  const setTasks = (await ofSet()) - tasksBefore;
  const lives = await Promise.all(
    [...agent.all().keys()].map(async (workflowId) => await lifeOf(world, workflowId)),
  );
  if (lives.length !== IN_SET)
    throw new Error(`${IN_SET} jobs were queued, and ${lives.length} runners of the set had one`);
  const sum = (of: (life: Life) => number): number =>
    lives.reduce((all, life) => all + of(life), 0);
  const tasks = sum(({ workflowTasks }) => workflowTasks);
  return {
    workflowTasks: roundTo((tasks + setTasks) / IN_SET, 1),
    temporalRequests: roundTo(totalRequests(requests) / IN_SET, 1),
    details: {
      workflowTasksOfLife: roundTo(tasks / IN_SET, 1),
      events: roundTo(sum(({ events }) => events) / IN_SET, 1),
      bytes: roundTo(sum(({ bytes }) => bytes) / IN_SET),
      setTasks,
      requests,
    },
  };
}

interface Counters {
  /** All requests of the worker, whatever the answer. */
  readonly worker: Record<string, number>;
  /** Those that were answered with success, by the worker's and by the API server's own count. */
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
