/** The chart with worker versioning on a real kubelet: a second version beside the first, while jobs run. */
import { CustomObjectsApi, type V1Pod } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { SimulatedJob } from '../../tools/simulator/types.ts';
import { ChartWorld, RELEASE } from '../support/chartWorld.ts';
import { HELD_JOB, letGo } from '../support/clusterRun.ts';
import { describeWithLab } from '../support/lab.ts';
import { inContainer } from '../support/podLog.ts';
import { until, untilSeen } from '../support/until.ts';
import {
  HAS_WORKER_CONTROLLER,
  startWorkerController,
  type WorkerController,
} from '../support/workerController.ts';

/** Releases of the same sources. */
const TAGS = ['1', '2'] as const;
/** Runners that are busy during the upgrade: as many as a small machine bears beside everything else, unless it is told otherwise. */
const BUSY = Number(process.env['HOLDFAST_TEST_BUSY_RUNNERS'] ?? '3');
const TIMEOUT_MS = 120_000 + BUSY * 5_000;

await describeWithLab(
  'the chart with worker versioning on a real node',
  { temporal: true, nodes: 'kubelet' },
  (lab) => {
    let world: ChartWorld;
    let controller: WorkerController | undefined;
    beforeAll(async () => {
      world = await ChartWorld.open(lab, TAGS);
      const {
        home: { kubeConfig, name: namespace },
        helm,
        client,
      } = world;
      controller = await startWorkerController({
        kubeConfig,
        kubeconfig: lab.kubernetes?.kubeconfig ?? '',
        namespace,
        helm,
        client,
      });
    }, 180_000);
    afterAll(async () => {
      await world.close();
      await controller?.stop();
    }, 120_000);

    const sets = (maxRunners: number): object => ({
      sets: [world.set('linux', { minRunners: 0, maxRunners })],
    });
    const queue = (): SimulatedJob =>
      world.simulator.queueJob({ repo: 'acme/app', labels: ['linux'], command: HELD_JOB });
    const now = ({ id }: SimulatedJob): SimulatedJob => world.simulator.job(id)!;
    async function begins(job: SimulatedJob): Promise<void> {
      await until(
        `job ${job.id} to begin`,
        () => now(job).output.includes('begun'),
        () => JSON.stringify([now(job), world.simulator.runners()]),
        TIMEOUT_MS,
      ).catch(async (error: unknown) => {
        throw new Error(`${controller?.told()}\n${await world.told()}`, { cause: error });
      });
    }
    const lives = async (): Promise<string[]> =>
      (await world.running()).filter((id) => id.startsWith('runner-'));
    async function buildOf(workflowId: string): Promise<string | undefined> {
      const { raw } = await world.client.workflow.getHandle(workflowId).describe();
      return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId ?? undefined;
    }
    /** By build id, how many worker pods each version has. */
    async function workers(): Promise<Record<string, number>> {
      const counts: Record<string, number> = {};
      for (const { metadata } of await world.pods('worker')) {
        const build = metadata?.labels?.['temporal.io/build-id'] ?? 'none';
        counts[build] = (counts[build] ?? 0) + 1;
      }
      return counts;
    }
    /** Brings a release, and awaits that its version is current. @returns its build id */
    async function bring(
      command: 'install' | 'upgrade',
      tag: string,
      values: object,
    ): Promise<string> {
      const worker = {
        ...(world.values(tag)['worker'] as object),
        workerDeployment: { enabled: true, scaledownDelay: '5s', deleteDelay: '5s' },
      };
      expect(await world.bring(command, tag, { ...values, worker })).toContain(
        `kubectl get workerdeployment/${RELEASE}-worker --namespace ${world.home.name}`,
      );
      const deploymentName = `${world.home.name}/${RELEASE}-worker`;
      const current = async (): Promise<string> => {
        const { workerDeploymentInfo } =
          await world.client.workflowService.describeWorkerDeployment({
            namespace: 'default',
            deploymentName,
          });
        return workerDeploymentInfo?.routingConfig?.currentDeploymentVersion?.buildId ?? '';
      };
      let seen = '';
      await until(
        `a version of tag ${tag} to be current`,
        async () => (seen = await current()).startsWith(`${tag}-`),
        () => `${seen}: ${controller?.told()}`,
        TIMEOUT_MS,
      );
      return seen;
    }
    const runnerPods = async (): Promise<V1Pod[]> =>
      (await world.runners.core.listNamespacedPod({ namespace: world.runners.name })).items;
    const namesOf = (pods: readonly V1Pod[]): string[] =>
      pods.map(({ metadata }) => metadata?.name ?? '').toSorted();

    test(
      'upgrade: both versions run; the set moves to the new one, and busy runners end on the one that they started on',
      async () => {
        const first = await bring('install', TAGS[0], sets(BUSY + 3));
        await world.leadWebhook();
        await until(
          'the set to be listed',
          async () => (await world.running()).join() === 'set-linux',
        );
        const jobs = Array.from({ length: BUSY }, queue);
        for (const job of jobs) await begins(job);
        const before = await untilSeen('all to be listed', lives, ({ length }) => length === BUSY);
        const podsBefore = namesOf(await runnerPods());

        const second = await bring('upgrade', TAGS[1], sets(BUSY + 2));
        await world.leadWebhook();
        await untilSeen(
          'the set to be of the new size',
          async () => await world.client.workflow.getHandle('set-linux').query('status'),
          (status) => (status as { max: number }).max === BUSY + 2,
        );
        expect(await workers()).toEqual({ [first]: 2, [second]: 2 });
        expect(await lives()).toEqual(before);
        expect(namesOf(await runnerPods())).toEqual(podsBefore);

        const late = queue();
        await begins(late);
        const [begun = ''] = await untilSeen(
          'its runner to be listed',
          async () => (await lives()).filter((id) => !before.includes(id)),
          ({ length }) => length === 1,
        );
        expect(await Promise.all([begun, 'set-linux'].map(buildOf))).toEqual([second, second]);

        const [worker] = await world.pods('worker');
        expect(
          await inContainer(world.home, worker?.metadata?.name ?? '', 'holdfast doctor', 'worker'),
        ).toContain(
          `ok      task queue "${world.taskQueue}": new workflows start on version ${second} of ${world.home.name}/${RELEASE}-worker`,
        );

        for (const name of namesOf(await runnerPods())) await letGo(world.runners, name);
        for (const job of [...jobs, late])
          await until(
            'the job to be over',
            () => now(job).status === 'completed',
            () => JSON.stringify(now(job)),
            TIMEOUT_MS,
          );
        for (const job of [...jobs, late])
          expect(now(job)).toMatchObject({ conclusion: 'success', assignments: 1 });
        await until(
          'their runners to be gone',
          async () => (await lives()).length === 0,
          () => JSON.stringify(world.simulator.runners()),
          TIMEOUT_MS,
        );
        for (const id of [...before, begun]) expect(world.recorder.podsOf(id)).toHaveLength(1);
        expect(new Set(await Promise.all(before.map(buildOf)))).toEqual(new Set([first]));
      },
      420_000 + BUSY * 15_000,
    );

    if (HAS_WORKER_CONTROLLER) {
      test('a version without workflows is scaled to zero and deleted', async () => {
        // The server looks every few minutes whether a version is drained.
        await untilSeen(
          'one version to be left',
          workers,
          (counts) => Object.keys(counts).length === 1,
          900_000,
        );
      }, 960_000);
    }

    test('uninstall: nothing is left of the release and its versions', async () => {
      await world.helm.run(
        'uninstall',
        RELEASE,
        '--namespace',
        world.home.name,
        '--cascade',
        'foreground',
        '--timeout',
        '240s',
      );
      const custom = world.home.kubeConfig.makeApiClient(CustomObjectsApi);
      const left = async (): Promise<number> => {
        const lists = ['workerdeployments', 'connections'].map(
          async (plural) =>
            (
              (await custom.listNamespacedCustomObject({
                group: 'temporal.io',
                version: 'v1alpha1',
                namespace: world.home.name,
                plural,
              })) as { items: object[] }
            ).items.length,
        );
        return (await Promise.all(lists)).reduce(
          (sum, each) => sum + each,
          (await world.pods('worker')).length,
        );
      };
      await untilSeen('nothing to be left', left, (count) => count === 0, 400_000);
      expect(await world.running()).toEqual([]);
    }, 660_000);
  },
);
