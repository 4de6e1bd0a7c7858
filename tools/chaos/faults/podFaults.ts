import { cancelSignal } from '../../../core/contract/index.ts';
import { ORGANIZATION, type ChaosEnvironment } from '../world.ts';
import type { KnownPod } from '../observer.ts';
import { chosen, type Fault } from './fault.ts';

const REPOSITORY = `${ORGANIZATION}/app`;
/** More than any pod of the kubelet's runs may have. */
const TOO_MUCH = 'exec node -e "const all = []; for (;;) all.push(Buffer.alloc(10_000_000, 1))"';

/** Takes one away: now an idle one, now one that runs a job, by the pick. */
const taken =
  (how: string, take: (world: ChaosEnvironment, pod: KnownPod) => Promise<unknown>): Fault =>
  async (world, { pick }) => {
    const { observer } = world;
    const busy = new Set(observer.openJobs().map(({ runner_name: runner }) => runner));
    const there = observer.pods().filter(({ ended, stopping }) => !ended && !stopping).toSorted((a, b) => Number(busy.has(a.runner)) - Number(busy.has(b.runner)) || (a.name < b.name ? -1 : 1)); // prettier-ignore
    const pod = chosen(there, pick);
    if (pod === undefined) return undefined;
    observer.add({ kind: 'taken', life: pod.life, pod: pod.uid, how });
    await take(world, pod);
    return { whom: `${pod.name}${busy.has(pod.runner) ? ', at its job' : ''}` };
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
  pod_evicted: taken('evicted', evict),
  drained_and_evicted: taken('evicted', async (world, pod) => {
    world.observer.add({ kind: 'told', life: pod.life, how: 'drain' });
    await Promise.all([
      world.client.workflow.getHandle(pod.life).signal(cancelSignal, { mode: 'drain' }),
      evict(world, pod),
    ]);
  }),
  pod_deleted: taken(
    'deleted',
    async ({ core, name: namespace }, { name }) =>
      await core.deleteNamespacedPod({ name, namespace }),
  ),
  pod_force_deleted: taken(
    'deleted by force',
    async ({ core, name: namespace }, { name }) =>
      await core.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 }),
  ),
  job_out_of_memory: ({ simulator, observer, name }, { pick }) => {
    const job = simulator.queueJob({
      repo: REPOSITORY,
      labels: ['self-hosted', `${name}-${pick < 0.5 ? 'e' : 's'}`],
      command: TOO_MUCH,
      sleepMs: 1_000,
    });
    observer.followExtraPods(job);
    return { whom: `whoever takes job ${job.id}` };
  },
} satisfies Record<string, Fault>;
