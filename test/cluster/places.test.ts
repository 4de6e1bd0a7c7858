import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { loadKubeConfig } from '../../activities/compute/kubernetes/kubeConfig.ts';
import { TEMPORAL_NAMESPACE_ANNOTATION } from '../../activities/compute/kubernetes/metadata.ts';
import { createProcessCompute } from '../../activities/compute/process/processCompute.ts';
import type { Compute } from '../../activities/ports/compute.ts';
import {
  RUNNER_WORKFLOW,
  SEARCH_ATTRIBUTES,
  cancelSignal,
  statusQuery,
  type RunnerInput,
  type RunnerResult,
  type RunnerStatus,
} from '../../core/contract/index.ts';
import type { PodView } from '../../core/domain/pod.ts';
import { formatLocation } from '../../core/domain/location.ts';
import { up } from '../../tools/lab/lab.ts';
import { HoldfastPlugin } from '../../worker/plugin/plugin.ts';
import { startKubernetesHarness, type KubernetesHarness } from '../support/kubernetesHarness.ts';
import { describeIf, ensureLab } from '../support/lab.ts';
import { otherClusterFolder } from '../support/labFolder.ts';
import { terminateAll } from '../support/terminateAll.ts';
import { until } from '../support/until.ts';
import { killWorkerProcesses, startWorkerProcess } from '../support/workerProcess.ts';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
});

const LIVES = 10;
const INSTALLATION = 'contract';

const prepare = async () => ({
  lab: await ensureLab({ temporal: true, kubernetes: true }),
  other: await up({ stateDir: otherClusterFolder(), temporal: false, kubernetes: true }),
});

/** Pods without a kubelet, whose status the test sets: all that is asked is who dares to take them for gone. */
await describeIf(
  'workers of several locations on one task queue',
  prepare,
  { temporal: true, kubernetes: true },
  ({ lab, other }) => {
    const taskQueue = `places-${randomUUID().slice(0, 8)}`;
    let client: Client;
    let harness: KubernetesHarness;
    let elsewhere: KubernetesHarness;
    let stateDir: string;
    let lives: WorkflowHandle[];
    let stopRight: () => Promise<void>;

    beforeAll(async () => {
      client = new Client({
        connection: await Connection.connect({ address: lab.temporal?.address ?? '' }),
      });
      harness = await startKubernetesHarness(lab.kubernetes?.kubeconfig ?? '');
      elsewhere = await startKubernetesHarness(lab.kubernetes?.kubeconfig ?? '');
      stateDir = await mkdtemp(join(tmpdir(), 'holdfast-places-'));
      stopRight = await startWorker(harness.compute);
      // Their waits look again every two seconds: whoever is there is asked.
      const input: RunnerInput = {
        ciServer: 'none',
        command: ['work'],
        supervisor: 'none',
        pod: { spec: { schedulerName: 'contract' } },
        intervals: { resync: '2s' },
      };
      lives = await Promise.all(
        Array.from(
          { length: LIVES },
          async () =>
            await client.workflow.start(RUNNER_WORKFLOW, {
              workflowId: `runner-${randomUUID().slice(0, 8)}`,
              taskQueue,
              args: [input],
            }),
        ),
      );
      await Promise.all(
        lives.map(async (life) => {
          await until('a pod', async () => (await status(life)).pod !== undefined);
          // Not bound to a node: the garbage collector takes what is bound to one that does not exist.
          const container = {
            name: 'runner',
            image: 'busybox',
            imageID: '',
            ready: true,
            started: true,
            restartCount: 0,
            state: { running: { startedAt: new Date(Math.floor(Date.now() / 1_000) * 1_000) } },
          };
          await harness.patchStatus(await podOf(life), {
            phase: 'Running',
            containerStatuses: [container],
          });
          await until('a busy runner', async () => (await status(life)).phase === 'Busy');
        }),
      );
    }, 180_000);

    test("a pod has the name of its workflow's Temporal namespace", async () => {
      const { items } = await harness.core.listNamespacedPod({ namespace: harness.namespace });
      const { namespaceInfo } = await client.workflowService.describeNamespace({
        namespace: 'default',
      });
      expect(namespaceInfo?.id).toMatch(/^[0-9a-f-]{36}$/);
      expect(
        items.map(({ metadata }) => metadata?.annotations?.[TEMPORAL_NAMESPACE_ANNOTATION]),
      ).toEqual(Array.from({ length: LIVES }, () => namespaceInfo?.id));
    });

    afterAll(async () => {
      await stopRight();
      await killWorkerProcesses();
      await terminateAll(client, taskQueue);
      await Promise.all([
        harness.close(),
        elsewhere.close(),
        client.connection.close(),
        rm(stateDir, { recursive: true, force: true }),
      ]);
    });

    const status = async (life: WorkflowHandle): Promise<RunnerStatus> =>
      await life.query(statusQuery);
    const podOf = async (life: WorkflowHandle): Promise<PodView> => {
      const { pod: name = '', podUid: uid = '' } = await status(life);
      return {
        name,
        uid,
        workflowId: life.workflowId,
        scheduled: true,
        createdAt: '',
        ended: false,
        deleted: false,
        terminating: false,
      };
    };
    const pods = async () =>
      (await harness.core.listNamespacedPod({ namespace: harness.namespace })).items.map(
        ({ metadata }) => ({ uid: metadata?.uid, told: metadata?.deletionTimestamp }),
      );
    /** Of the wait for each life's end: how it stands, and what its last try came to. */
    const waits = async () =>
      await Promise.all(
        lives.map(async (life) => {
          const { raw, status: { name } } = await life.describe(); // prettier-ignore
          if (name !== 'RUNNING')
            throw new Error(`${life.workflowId} has ended: ${JSON.stringify(await life.result())}`);
          const [wait] = (raw.pendingActivities ?? []).filter(({ activityId }) =>
            activityId?.startsWith('ended/'),
          );
          return {
            attempt: wait?.attempt ?? 0,
            failure: wait?.lastFailure?.message ?? '',
            type: wait?.lastFailure?.applicationFailureInfo?.type,
          };
        }),
      );

    /** A Worker of one's own with the plugin: nothing checks its settings. */
    async function startWorker(compute: Compute): Promise<() => Promise<void>> {
      const plugin = new HoldfastPlugin({ compute, ciServers: { get: () => { throw new Error('no CI server here'); } }, ciQueues: [] }); // prettier-ignore
      // Of its own: the SDK refuses two Workers of one connection on one task queue.
      const connection = await NativeConnection.connect({ address: lab.temporal?.address ?? '' });
      const worker = await Worker.create({ connection, taskQueue, plugins: [plugin] });
      const running = worker.run();
      return async () => {
        worker.shutdown();
        await running;
        await connection.close();
      };
    }

    const pairings: Record<string, () => Compute> = {
      'another installation': () => harness.instance({ installation: 'another' }),
      'another namespace': () => elsewhere.compute,
      'another cluster, all else the same': () =>
        harness.instance({
          kubeConfig: loadKubeConfig({ path: other.kubernetes?.kubeconfig ?? '' }),
        }),
      'another compute': () => createProcessCompute({ stateDir, installation: INSTALLATION }),
    };

    test.each(Object.entries(pairings))(
      '%s: alone with the queue it touches no pod, answers no wait, and says so',
      async (_what, make) => {
        const before = await pods();
        expect(before).toHaveLength(LIVES);
        await stopRight();
        const wrong = make();
        const stopWrong = await startWorker(wrong);
        const refused = async () =>
          (await waits()).map(({ type, failure }) => (type === 'WrongLocation' ? failure : ''));
        const both = [
          formatLocation(await harness.compute.location()),
          formatLocation(await wrong.location()),
        ];
        await until(
          'each wait was refused',
          async () =>
            (await refused()).every((failure) => both.every((place) => failure.includes(place))),
          () => both.join(' '),
          60_000,
        );
        expect(await pods()).toEqual(before);
        // Both at once: whoever takes a wait, the right one answers it in the end.
        stopRight = await startWorker(harness.compute);
        const asked = (await waits()).map(({ attempt }) => attempt);
        await until(
          'each wait was tried again',
          async () => (await waits()).every(({ attempt }, index) => attempt > (asked[index] ?? 0)),
          undefined,
          60_000,
        );
        expect(await pods()).toEqual(before);
        await stopWrong();
        expect((await Promise.all(lives.map(status))).map(({ phase }) => phase)).toEqual(
          lives.map(() => 'Busy'),
        );
      },
      180_000,
    );

    test("a runner's location is in lists; a worker of another location refuses to start and names both, one of the same location starts", async () => {
      const here = formatLocation(await harness.compute.location());
      for (const life of lives)
        expect((await life.describe()).typedSearchAttributes.get(SEARCH_ATTRIBUTES.place)).toBe(
          here,
        );
      const settings = {
        TEMPORAL_ADDRESS: lab.temporal?.address ?? '',
        HOLDFAST_TASK_QUEUE: taskQueue,
        HOLDFAST_KUBECONFIG: lab.kubernetes?.kubeconfig ?? '',
        HOLDFAST_KUBERNETES_NAMESPACE: harness.namespace,
        HOLDFAST_INSTALLATION: INSTALLATION,
        HOLDFAST_GITHUB_TOKEN: 'x',
        HOLDFAST_HTTP_ADDRESS: '127.0.0.1:0',
      };
      const wrong = startWorkerProcess({
        ...settings,
        HOLDFAST_KUBERNETES_NAMESPACE: elsewhere.namespace,
      });
      expect(await wrong.ended).toBe(2);
      expect(wrong.errors.join('\n')).toContain(
        `HOLDFAST_TASK_QUEUE: the task queue "${taskQueue}" is used for runners in ${here} (`,
      );
      expect(wrong.errors.join('\n')).toContain(
        `this worker's are in ${formatLocation(await elsewhere.compute.location())} (`,
      );
      const same = startWorkerProcess(settings);
      await same.started();
      same.kill('SIGTERM');
      expect(await same.ended).toBe(143);
    }, 120_000);

    test('a pod without labels has not ended', async () => {
      const [life] = lives;
      const { name } = await podOf(life as WorkflowHandle);
      const before = await pods();
      const label = { op: 'remove', path: '/metadata/labels/holdfast.dev~1installation' };
      await harness.core.patchNamespacedPod({ name, namespace: harness.namespace, body: [label] });
      const asked = (await waits()).map(({ attempt }) => attempt);
      await until(
        'its wait looked live, twice',
        async () => ((await waits())[0]?.attempt ?? 0) >= (asked[0] ?? 0) + 2,
        undefined,
        60_000,
      );
      expect(await pods()).toEqual(before);
      expect((await status(life as WorkflowHandle)).phase).toBe('Busy');
    }, 90_000);

    test('waits are completed by the right worker: each runner ends with its pod', async () => {
      const [gone, ...others] = lives;
      await Promise.all(others.map(async (life) => await harness.end(await podOf(life), 0)));
      const results = await Promise.all(
        others.map(async (life) => (await life.result()) as RunnerResult),
      );
      expect(results.map(({ outcome, attempt }) => ({ outcome, attempt }))).toEqual(
        others.map(() => ({ outcome: 'succeeded', attempt: 1 })),
      );
      await gone?.signal(cancelSignal, { mode: 'force' });
      expect(await gone?.result()).toMatchObject({ outcome: 'aborted', attempt: 1 });
      expect(await pods()).toEqual([]);
    }, 90_000);
  },
);
