/** The chart on a real kubelet: installed, and upgraded while jobs run. quickstart.test.ts has its uninstallation. */
import { NetworkingV1Api, PolicyV1Api, type V1Pod } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { SimulatedJob } from '../../tools/simulator/types.ts';
import { ChartWorld, RELEASE } from '../support/chartWorld.ts';
import { HELD_JOB, countingJob, letGo } from '../support/clusterRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { until } from '../support/until.ts';

/** Releases of the same sources. */
const TAGS = ['1', '2'] as const;
/** Runners that are busy during the upgrade: as many as a small machine bears beside everything else, unless it is told otherwise. */
const BUSY = Number(process.env['HOLDFAST_TEST_BUSY_RUNNERS'] ?? '3');

await describeWithLab('the chart on a real node', { temporal: true, nodes: 'kubelet' }, (lab) => {
  let world: ChartWorld;
  beforeAll(async () => {
    world = await ChartWorld.open(lab, TAGS);
  }, 180_000);
  afterAll(async () => await world.close(), 120_000);

  const queue = (command: string): SimulatedJob =>
    world.simulator.queueJob({ repo: 'acme/app', labels: ['linux'], command });
  const now = ({ id }: SimulatedJob): SimulatedJob => world.simulator.job(id)!;
  async function says(job: SimulatedJob, line: string): Promise<void> {
    await until(
      `job ${job.id} to say "${line}"`,
      () => now(job).output.includes(line),
      () => JSON.stringify([now(job), world.simulator.runners()]),
      120_000 + BUSY * 5_000,
    ).catch(async (error: unknown) => {
      throw new Error(await world.told(), { cause: error });
    });
  }
  /** Ran to its last line in one runner. */
  function expectUnharmed(job: SimulatedJob): void {
    const { conclusion, assignments, annotation, output } = now(job);
    expect({
      conclusion,
      assignments,
      annotation,
      interrupted: output.includes('interrupted'),
    }).toEqual({
      conclusion: 'success',
      assignments: 1,
      annotation: undefined,
      interrupted: false,
    });
  }
  const namesOf = (pods: readonly V1Pod[]): string[] =>
    pods.map(({ metadata }) => metadata?.name ?? '').toSorted();
  const runnerPods = async (): Promise<V1Pod[]> =>
    (await world.runners.core.listNamespacedPod({ namespace: world.runners.name })).items;
  const uidsOf = (pods: readonly V1Pod[]): string[] =>
    pods.map(({ metadata }) => metadata?.uid ?? '').toSorted();
  const imagesOf = (pods: readonly V1Pod[]): (string | undefined)[] =>
    pods.map(({ spec }) => spec?.containers[0]?.image);

  test('install: workers and webhook are ready, the set is applied, and an announced job runs', async () => {
    const notes = await world.bring('install', TAGS[0], {
      sets: [world.set('linux', { minRunners: 0, maxRunners: BUSY + 3 })],
    });
    expect(notes).toContain(`workers in ${world.home.name}, runners in ${world.runners.name}`);
    const [workers, webhooks] = await Promise.all([world.pods('worker'), world.pods('webhook')]);
    expect(imagesOf([...workers, ...webhooks])).toEqual(Array(4).fill('holdfast.test/worker:1'));
    expect(await world.leadWebhook()).toEqual(namesOf(webhooks));
    await until('the set to be listed', async () => (await world.running()).join() === 'set-linux');

    const job = queue(countingJob(1));
    await says(job, 'finished');
    await until('the job to be over', () => now(job).status === 'completed');
    expectUnharmed(job);
    await until(
      'its runner to be gone',
      async () => (await world.running()).length === 1,
      () => JSON.stringify(world.simulator.runners()),
      60_000,
    );
  }, 420_000);

  test('disruption budgets and network policies select these pods', async () => {
    const { kubeConfig, name: namespace } = world.home;
    const policy = kubeConfig.makeApiClient(PolicyV1Api);
    await until('the budgets to have counted', async () =>
      (await policy.listNamespacedPodDisruptionBudget({ namespace })).items.every(
        ({ status }) =>
          status?.expectedPods === 2 &&
          status.currentHealthy === 2 &&
          status.disruptionsAllowed === 1,
      ),
    );
    expect(
      (await policy.listNamespacedPodDisruptionBudget({ namespace })).items
        .map(({ metadata }) => metadata?.name ?? '')
        .toSorted(),
    ).toEqual(['holdfast-webhook', 'holdfast-worker']);
    for (const part of ['worker', 'webhook']) {
      const { spec } = await kubeConfig
        .makeApiClient(NetworkingV1Api)
        .readNamespacedNetworkPolicy({ namespace, name: `${RELEASE}-${part}` });
      const labelSelector = Object.entries(spec?.podSelector?.matchLabels ?? {})
        .map(([key, value]) => `${key}=${value}`)
        .join();
      const { items } = await world.home.core.listNamespacedPod({ namespace, labelSelector });
      expect(namesOf(items)).toEqual(namesOf(await world.pods(part)));
    }
  });

  test(
    'upgrade: new pods and another size of the set, without an effect on busy runners',
    async () => {
      const jobs = Array.from({ length: BUSY }, () => queue(HELD_JOB));
      for (const job of jobs) await says(job, 'begun');
      await until('all to be listed', async () => (await world.running()).length === BUSY + 1);
      const before = await world.running();
      const podsBefore = uidsOf(await runnerPods());
      expect(podsBefore).toHaveLength(BUSY);

      await world.bring('upgrade', TAGS[1], {
        sets: [world.set('linux', { minRunners: 0, maxRunners: BUSY + 1 })],
      });
      for (const part of ['worker', 'webhook'])
        expect(imagesOf(await world.pods(part))).toEqual(Array(2).fill('holdfast.test/worker:2'));
      await world.leadWebhook();
      await until('the set to be of the new size', async () => {
        const status = await world.client.workflow.getHandle('set-linux').query('status');
        return (status as { max: number }).max === BUSY + 1;
      });
      expect(await world.running()).toEqual(before);
      const podsAfter = await runnerPods();
      expect(uidsOf(podsAfter)).toEqual(podsBefore);

      for (const name of namesOf(podsAfter)) await letGo(world.runners, name);
      for (const job of jobs)
        await until(
          'the job to be over',
          () => now(job).status === 'completed',
          () => JSON.stringify(now(job)),
          60_000,
        );
      for (const job of jobs) expectUnharmed(job);
      await until(
        'their runners to be gone',
        async () => (await world.running()).length === 1,
        () => JSON.stringify(world.simulator.runners()),
        60_000,
      );
      for (const workflowId of before.filter((id) => id !== 'set-linux'))
        expect(world.recorder.podsOf(workflowId)).toHaveLength(1);
    },
    420_000 + BUSY * 10_000,
  );
});
