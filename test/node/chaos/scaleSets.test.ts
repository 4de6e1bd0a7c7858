import { afterAll, expect, test } from '@jest/globals';
import { RUNNER_SET_WORKFLOW, setWorkflowId } from '../../../core/contract/index.ts';
import { querySetStatus } from '../../../activities/runnerSet/querySetStatus.ts';
import { runScaleSetChaos } from '../../../tools/chaos/scaleSets.ts';
import {
  openChaosEnvironment,
  ORGANIZATION,
  type ChaosEnvironment,
} from '../../../tools/chaos/world.ts';
import { down, up } from '../../../tools/lab/lab.ts';
import { describeIf } from '../../support/lab.ts';
import { chaosLabFolder } from '../../support/labFolder.ts';
import { until } from '../../support/until.ts';

const SEED = 20_261_127;
const KILLS = 5;
/** A machine that is busy needs as long to start a worker. */
const SERVED_MS = 12_000;
const BETWEEN_JOBS_MS = 2_000;
const MINUTE_MS = 60_000;
/** Nodes of the lab. Each has room for one pod of {@link REQUESTS}. */
const NODES = 10;
const MORE_NODES = 20;
const REQUESTS = { cpu: '1500' };
const SET = 'room';
/** No job ends by itself. */
const JOB_MS = 3_600_000;

const progress = (line: string): void => void process.stderr.write(`[chaos] ${line}\n`);

await describeIf(
  'the jobs of a scale set',
  async () => await up({ stateDir: chaosLabFolder(), nodes: 'kwok' }),
  { temporal: true, nodes: 'kwok' },
  ({ stateDir }) => {
    afterAll(async () => await down({ stateDir, purge: true }), MINUTE_MS);

    test(`have a runner each, though all workers are killed ${KILLS} times`, async () => {
      const report = await runScaleSetChaos({
        seed: SEED,
        jobs: 30,
        kills: KILLS,
        betweenKillsMs: 0,
        servedMs: SERVED_MS,
        betweenJobsMs: BETWEEN_JOBS_MS,
        stateDir,
        progress,
      });
      progress(JSON.stringify(report));
      expect(report.violations).toEqual([]);
      expect(report.sessions).toMatchObject({ opened: 0, conflicts: 0 });
      expect(report.sessions.continued).toBeGreaterThanOrEqual(KILLS);
    }, 600_000);

    test('are claimed as far as the cluster has room, and no pod is pending for a minute', async () => {
      const world = await openChaosEnvironment({ seed: SEED, nodes: 'kwok', stateDir, progress });
      try {
        for (let job = 0; job < 100; job++)
          world.simulator.queueJob({
            repo: `${ORGANIZATION}/web`,
            labels: [SET],
            sleepMs: JOB_MS,
          });
        await startSet(world);
        const startedAt = Date.now();
        await until(
          'the first minute',
          () => Date.now() - startedAt > MINUTE_MS,
          undefined,
          90_000,
        );
        const seen = await watchRoom(world, 2 * MINUTE_MS);
        progress(JSON.stringify(seen));
        // On a busy machine a node may be seen late.
        const near = sum(seen.capacities, (capacity) => Math.abs(capacity - NODES) <= 1);
        expect(near).toBeGreaterThanOrEqual(0.9 * sum(seen.capacities));
        expect(seen.longestPendingMs).toBeLessThanOrEqual(MINUTE_MS);
        expect(await limitOf(world)).toMatchObject({
          limit: NODES,
          reason: 'pods unschedulable (Insufficient cpu)',
        });
        for (let node = 0; node < MORE_NODES; node++) await addNode(world, `more-${node}`);
        const addedAt = Date.now();
        await until('the room to be used', async () => {
          const { placed } = await pods(world);
          return placed === NODES + MORE_NODES;
        });
        const usedMs = Date.now() - addedAt;
        progress(`room for ${MORE_NODES} more was used after ${usedMs} ms`);
        expect(usedMs).toBeLessThanOrEqual(30_000);
        for (const { id } of world.simulator.jobs()) world.simulator.cancelJob(id);
      } finally {
        await world.close();
      }
    }, 600_000);
  },
);

async function startSet({ client, name }: ChaosEnvironment): Promise<void> {
  const containers = [{ name: 'runner', resources: { requests: REQUESTS } }];
  await client.workflow.start(RUNNER_SET_WORKFLOW, {
    workflowId: setWorkflowId(SET),
    taskQueue: name,
    args: [
      {
        name: SET,
        max: 50,
        capacity: 'observed',
        template: {
          organization: ORGANIZATION,
          labels: [SET],
          demand: 'scaleSet',
          pod: { spec: { containers } },
        },
      },
    ],
  });
}

interface Pods {
  /** Pods with a node. */
  readonly placed: number;
  /** The longest time that a pod has been without one (ms). */
  readonly longestPendingMs: number;
}

async function pods({ core, name: namespace }: ChaosEnvironment): Promise<Pods> {
  const { items } = await core.listNamespacedPod({ namespace });
  const pending = items.filter(({ spec }) => spec?.nodeName === undefined);
  const ages = pending.map(({ metadata }) =>
    Math.max(0, Date.now() - (metadata?.creationTimestamp?.getTime() ?? 0)),
  );
  return { placed: items.length - pending.length, longestPendingMs: Math.max(0, ...ages) };
}

/** Looks at the cluster and the advertised capacity for a while. */
async function watchRoom(
  world: ChaosEnvironment,
  forMs: number,
): Promise<{ capacities: Samples; longestPendingMs: number }> {
  const capacities: Record<number, number> = {};
  let longest = 0;
  const startedAt = Date.now();
  const isOver = async (): Promise<boolean> => {
    longest = Math.max(longest, (await pods(world)).longestPendingMs);
    const capacity = world.simulator.scaleSet(SET)?.capacity ?? 0;
    capacities[capacity] = (capacities[capacity] ?? 0) + 1;
    return Date.now() - startedAt > forMs;
  };
  await until('the time to pass', isOver, undefined, 2 * forMs);
  return { capacities, longestPendingMs: longest };
}

/** How often each capacity was seen. */
type Samples = Readonly<Record<number, number>>;

function sum(samples: Samples, counts: (capacity: number) => boolean = () => true): number {
  return Object.entries(samples)
    .filter(([capacity]) => counts(Number(capacity)))
    .reduce((total, [, times]) => total + times, 0);
}

async function limitOf({ client }: ChaosEnvironment): Promise<unknown> {
  return (await querySetStatus(client, setWorkflowId(SET))).clusterLimit;
}

/** Adds a node like those of the lab. */
async function addNode({ core }: ChaosEnvironment, name: string): Promise<void> {
  const resources = { cpu: '2000', memory: '8Ti', 'ephemeral-storage': '8Ti', pods: '100' };
  await core.createNode({
    body: {
      metadata: {
        name,
        annotations: { 'kwok.x-k8s.io/node': 'fake' },
        labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', type: 'kwok' },
      },
      status: { allocatable: resources, capacity: resources },
    },
  });
}
