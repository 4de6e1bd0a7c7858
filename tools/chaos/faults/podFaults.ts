import { cancelSignal } from '../../../core/contract/index.ts';
import { ORGANIZATION, type ChaosEnvironment } from '../world.ts';
import type { KnownPod } from '../observer.ts';
import { choose, type Fault } from './fault.ts';

const REPOSITORY = `${ORGANIZATION}/app`;
/** Command that uses more memory than the limit of every pod on the kubelet. */
const OUT_OF_MEMORY_COMMAND =
  'exec node -e "const all = []; for (;;) all.push(Buffer.alloc(10_000_000, 1))"';

/** Returns a fault that removes one pod. The pick decides whether the pod is idle or busy. */
const disrupt =
  (how: string, remove: (world: ChaosEnvironment, pod: KnownPod) => Promise<unknown>): Fault =>
  async (world, { pick }) => {
    const { observer } = world;
    const busy = new Set(observer.openJobs().map(({ runner_name: runner }) => runner));
    const present = observer.pods().filter(({ ended, stopping }) => !ended && !stopping).toSorted((a, b) => Number(busy.has(a.runner)) - Number(busy.has(b.runner)) || (a.name < b.name ? -1 : 1)); // prettier-ignore
    const pod = choose(present, pick);
    if (pod === undefined) return undefined;
    observer.add({ kind: 'disrupted', workflowId: pod.workflowId, pod: pod.uid, how });
    await remove(world, pod);
    return { target: `${pod.name}${busy.has(pod.runner) ? ', during its job' : ''}` };
  };

async function evict(
  { core, name: namespace }: ChaosEnvironment,
  { name }: KnownPod,
): Promise<void> {
  await core.createNamespacedPodEviction({
    name,
    namespace,
    body: { metadata: { name, namespace } },
  });
}

export const podFaults = {
  pod_evicted: disrupt('evicted', evict),
  drained_and_evicted: disrupt('evicted', async (world, pod) => {
    world.observer.add({ kind: 'stopRequested', workflowId: pod.workflowId, how: 'drain' });
    await Promise.all([
      world.client.workflow.getHandle(pod.workflowId).signal(cancelSignal, { mode: 'drain' }),
      evict(world, pod),
    ]);
  }),
  pod_deleted: disrupt(
    'deleted',
    async ({ core, name: namespace }, { name }) =>
      await core.deleteNamespacedPod({ name, namespace }),
  ),
  pod_force_deleted: disrupt(
    'deleted without a grace period',
    async ({ core, name: namespace }, { name }) =>
      await core.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 }),
  ),
  job_out_of_memory: ({ simulator, observer, name }, { pick }) => {
    const job = simulator.queueJob({
      repo: REPOSITORY,
      labels: ['self-hosted', `${name}-${pick < 0.5 ? 'e' : 's'}`],
      command: OUT_OF_MEMORY_COMMAND,
      sleepMs: 1_000,
    });
    observer.followOutOfMemory(job);
    return { target: `the runner of job ${job.id}` };
  },
} satisfies Record<string, Fault>;
