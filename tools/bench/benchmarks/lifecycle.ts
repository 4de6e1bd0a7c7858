import { apiServerMetrics } from '../apiServerMetrics.ts';
import type { Measured, WorldBenchmark } from '../benchmark.ts';
import { sum, type Sample } from '../metrics.ts';
import { REPOSITORY, startRunner, untilClosed, untilPhase } from '../runners.ts';
import { round } from '../statistics.ts';
import type { World } from '../world.ts';

/** The worker's count of its requests. */
const OWN = 'holdfast_kubernetes_requests_total';
/** The verbs of those that belong to a life, as the worker and as the API server name them. The watch is shared. */
const VERBS = { get: 'GET', create: 'POST', delete: 'DELETE' } as const;
/** Only the worker does these: the agent reads Secrets, KWOK and the agent patch, and KWOK's deletion of a deleted pod comes too late. */
const WORKER_ONLY = [['create', 'pods'], ['create', 'secrets'], ['delete', 'pods'], ['delete', 'secrets']] as const; // prettier-ignore

export const lifecycle: WorldBenchmark = {
  name: 'lifecycle',
  summary: 'what one uneventful ephemeral life costs (with --runners N: N lives, one after the other; the dearest, and the mean of the requests)',
  defaultRunners: 1,
  figures: {
    events: { unit: 'events', what: 'events in the workflow history', budget: { kind: 'max', limit: 45 } },
    bytes: { unit: 'bytes', what: 'size of the workflow history', budget: { kind: 'max', limit: 25 * 1024 } },
    githubRequests: { unit: 'requests', what: 'to the CI server', budget: { kind: 'max', limit: 2 } },
    kubernetesRequests: { unit: 'requests', what: 'to the Kubernetes API, without the shared watch', budget: { kind: 'max', limit: 5 }, compare: 'actions-runner-controller: 13.6 to 16.6 for each job' },
  },

  async run(world, runners): Promise<Measured> {
    const worker = await world.startWorker().ready();
    const before = await readCounters(world, await worker.metrics());
    const histories: { events: number; bytes: number }[] = [];
    for (let number = 1; number <= runners; number++) {
      const { workflowId } = await startRunner(world, number);
      await untilPhase(world, 'Idle', 1);
      await world.simulator.queueJob({ repo: REPOSITORY, sleepMs: 1_000 });
      await untilClosed(world, number);
      const { historyLength, historySize } = await world.client.workflow.getHandle(workflowId).describe();
      histories.push({ events: historyLength, bytes: historySize ?? Number.NaN });
    }
    const after = await readCounters(world, await worker.metrics());
    for (const [verb, resource] of WORKER_ONLY) {
      const key = `${verb} ${resource}`;
      const own = (after.done.worker[key] ?? 0) - (before.done.worker[key] ?? 0);
      const servers = (after.done.apiServer[key] ?? 0) - (before.done.apiServer[key] ?? 0);
      if (own !== servers) throw new Error(`the worker counts ${own} requests "${key}", and the API server ${servers}: one of them is wrong`);
    }
    const kubernetes = difference(before.worker, after.worker);
    const github = difference(before.github, after.github);
    return {
      figures: {
        events: Math.max(...histories.map(({ events }) => events)),
        bytes: Math.max(...histories.map(({ bytes }) => bytes)),
        githubRequests: round(total(github) / runners, 1),
        kubernetesRequests: round(total(kubernetes) / runners, 1),
      },
      details: { github, kubernetes },
    };
  },
};

interface Counters {
  /** All requests of the worker, whatever the answer. */
  readonly worker: Record<string, number>;
  /** Those that were answered with success, by the worker's and by the API server's own count. */
  readonly done: { readonly worker: Record<string, number>; readonly apiServer: Record<string, number> };
  readonly github: Record<string, number>;
}

async function readCounters({ kubeconfig, simulator }: World, ofWorker: readonly Sample[]): Promise<Counters> {
  const ofServer = await apiServerMetrics(kubeconfig);
  const { byStatus } = await simulator.requestCounts();
  const worker: Record<string, number> = {};
  const done: Counters['done'] = { worker: {}, apiServer: {} };
  for (const [verb, method] of Object.entries(VERBS)) {
    for (const resource of ['pods', 'secrets']) {
      const key = `${verb} ${resource}`;
      worker[key] = sum(ofWorker, OWN, { verb, resource });
      for (const code of ['200', '201', '202']) {
        done.worker[key] = (done.worker[key] ?? 0) + sum(ofWorker, OWN, { verb, resource, status: code });
        done.apiServer[key] = (done.apiServer[key] ?? 0) + sum(ofServer, 'apiserver_request_total', { verb: method, resource, subresource: '', code });
      }
    }
  }
  return { worker, done, github: byStatus };
}

/** What has been added, without zeros. */
function difference(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  const added = Object.entries(after).map(([key, value]): [string, number] => [key, value - (before[key] ?? 0)]);
  return Object.fromEntries(added.filter(([, value]) => value !== 0));
}

function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}
